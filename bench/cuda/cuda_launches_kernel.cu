#include "bench/cuda/cuda_launches.h"

namespace hpe::bench {

namespace {

__global__ void add(unsigned* number) {
  if (threadIdx.x == 0) *number += 1;
}

}  // namespace

void launch_add(unsigned* number) { add<<<1, 32>>>(number); }

}  // namespace hpe::bench
