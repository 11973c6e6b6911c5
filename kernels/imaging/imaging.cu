// The kernels of hpe's imaging programs for GPUs. Neighbouring threads compute neighbouring elements.

#include "kernels/imaging.h"
#include "kernels/rays.h"

namespace {

template <class Parameters>
__device__ void elements(const Parameters& p) {
  const uint64_t count = p.count(), all = uint64_t{gridDim.x} * blockDim.x;
  for (uint64_t i = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += all) p.element(i);
}

}  // namespace

extern "C" {

#define HPE_IMAGING(name, Parameters) \
  __global__ __launch_bounds__(256) void name(Parameters p) { elements(p); }
#include "kernels/imaging/imaging.def"
#undef HPE_IMAGING

// A block of 256 threads computes a square of the product from sections of a and b in shared memory; each thread
// computes 4 x 4 values.
__global__ __launch_bounds__(256) void imaging_multiply(hpe::kernels::multiply_matrices p) {
  constexpr int side = hpe::kernels::multiply_side, depth = 16, own = 4, threads = 256;
  __shared__ float a[depth][side + 1], b[depth][side];
  const int column = threadIdx.x % (side / own), row = threadIdx.x / (side / own);
  const int top = int(blockIdx.y) * side, left = int(blockIdx.x) * side;
  float sum[own][own] = {};
  for (int k0 = 0; k0 < p.inner; k0 += depth) {
    for (int n = threadIdx.x; n < side * depth; n += threads) {
      const int i = n / depth, k = n % depth, j = n % side, l = n / side;
      const bool a_there = top + i < p.rows && k0 + k < p.inner, b_there = k0 + l < p.inner && left + j < p.columns;
      a[k][i] = a_there ? p.a[int64_t(top + i) * p.inner + k0 + k] : 0;
      b[l][j] = b_there ? p.b[int64_t(k0 + l) * p.columns + left + j] : 0;
    }
    __syncthreads();
    for (int k = 0; k < depth; ++k)
      for (int i = 0; i < own; ++i)
        for (int j = 0; j < own; ++j) sum[i][j] += a[k][row * own + i] * b[k][column * own + j];
    __syncthreads();
  }
  for (int i = 0; i < own; ++i)
    for (int j = 0; j < own; ++j) {
      const int y = top + row * own + i, x = left + column * own + j;
      if (y >= p.rows || x >= p.columns) continue;
      float& c = p.c[int64_t(y) * p.columns + x];
      c = p.accumulate != 0 ? c + sum[i][j] : sum[i][j];
    }
}

}  // extern "C"
