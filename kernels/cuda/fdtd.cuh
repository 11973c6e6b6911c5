#pragma once

/// The bodies for GPUs of the kernels of kernels/fdtd.h.

#include "kernels/fdtd.h"

namespace hpe::kernels::cuda {
namespace {

/// Calls cell(index in the packed cells, index in the field) for each cell of the face.
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
