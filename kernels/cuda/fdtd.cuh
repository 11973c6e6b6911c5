#pragma once

/// The bodies of the kernels of kernels/fdtd.h for GPUs.

#include "kernels/cuda/wave_march.cuh"
#include "kernels/fdtd.h"

namespace hpe::kernels::cuda {
namespace {

struct undamped_point {
  __device__ void start(bool /*computes*/, int64_t /*y*/, int64_t /*z*/) {}
  __device__ void plane(int64_t /*x*/) {}
  __device__ float step(int /*i*/, float here, float before, float speed, float laplacian) const {
    return multiply_add(speed, laplacian, add(here, add(here, -before)));
  }
};

template <int64_t order>
__device__ void run(const fdtd_step_f32<order>& p) {
  constexpr auto radius = static_cast<int>(order / 2);
  constexpr int depth = radius <= 4 ? 2 : 1;
  __shared__ march_memory<radius, march_cells, march_rows, depth> memory;
  const cell_range& c = p.cells;
  const int64_t tiles_z = (c.z1 - c.z0 + march_cells - 1) / march_cells;
  const int64_t columns = (c.y1 - c.y0 + march_rows - 1) / march_rows * tiles_z;
  const column_tile t = find_tile(p.cut, columns, c.x1 - c.x0, blockIdx.x);
  const int64_t y = c.y0 + t.column / tiles_z * march_rows, z = c.z0 + t.column % tiles_z * march_cells;
  march(memory, p, march_range{c.x0 + t.x0, c.x0 + t.x1, c.y1, c.z1, y, z}, undamped_point{});
}

/// Calls cell(place in the packed cells, place in the field) for each cell of the face.
template <class Cell>
__device__ void for_face(const fdtd_face<float>& p, Cell cell) {
  const cell_range& c = p.cells;
  const int64_t ny = c.y1 - c.y0, nz = c.z1 - c.z0, all = c.count(), threads = int64_t{gridDim.x} * blockDim.x;
  for (int64_t n = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; n < all; n += threads) {
    const auto row = static_cast<uint32_t>(n / nz);
    cell(n, p.layout.index(c.x0 + row / ny, c.y0 + row % ny, c.z0 + n % nz));
  }
}

__device__ void run(const fdtd_pack<float>& p) {
  for_face(p, [&](int64_t n, int64_t cell) { p.packed[n] = p.field[cell]; });
}

__device__ void run(const fdtd_unpack<float>& p) {
  for_face(p, [&](int64_t n, int64_t cell) { p.field[cell] = p.packed[n]; });
}

}  // namespace
}  // namespace hpe::kernels::cuda
