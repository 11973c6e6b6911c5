// The kernel of the listings for GPUs.

#include "bench/listings/step.h"

extern "C" __global__ void listings_step(const hpe::bench::listings::stencil p) {
  for (uint64_t cell = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; cell < p.cells;
       cell += uint64_t{gridDim.x} * blockDim.x)
    p.out[cell] = stepped(p, cell);
}
