// The kernels of kernels/fdtd.h for GPUs.

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

/// blockIdx counts tiles along z, y and x.
template <int radius>
__device__ void step(const fdtd_step<float>& p) {
  const cell_range& c = p.cells;
  const int64_t x0 = c.x0 + blockIdx.z * p.tile_x;
  const march_range range{x0,   min(x0 + p.tile_x, c.x1), c.y1, c.z1, c.y0 + blockIdx.y * fdtd_rows,
                          c.z0 + blockIdx.x * fdtd_cells};
  march<radius, fdtd_cells, fdtd_rows, radius <= 4 ? 2 : 1>(p, range, undamped_point{});
}

/// Calls cell(place in the packed cells, place in the field) for each.
template <class Cell>
__device__ void for_face(const fdtd_face<float>& p, Cell cell) {
  const cell_range& c = p.cells;
  const int64_t ny = c.y1 - c.y0, nz = c.z1 - c.z0, all = c.count(), threads = int64_t{gridDim.x} * blockDim.x;
  for (int64_t n = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; n < all; n += threads) {
    const auto row = static_cast<uint32_t>(n / nz);
    cell(n, p.layout.index(c.x0 + row / ny, c.y0 + row % ny, c.z0 + n % nz));
  }
}

}  // namespace
}  // namespace hpe::kernels::cuda

#define HPE_FDTD_STEP(radius)                                                                              \
  extern "C" __global__ void __launch_bounds__(hpe::kernels::fdtd_threads, 2)                              \
      fdtd_step_##radius(const __grid_constant__ hpe::kernels::fdtd_step<float> p) {                       \
    hpe::kernels::cuda::step<radius>(p);                                                                   \
  }
HPE_FDTD_STEP(1)
HPE_FDTD_STEP(2)
HPE_FDTD_STEP(3)
HPE_FDTD_STEP(4)
HPE_FDTD_STEP(5)
HPE_FDTD_STEP(6)
HPE_FDTD_STEP(7)
HPE_FDTD_STEP(8)
