// The kernels of the examples, for GPUs. They have the same names and the same parameter
// structs as the kernels in kernels.cpp; CUDA passes the structs by value.

#include "kernels.h"

namespace {

__device__ uint64_t first_element() {
  return uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
}
__device__ uint64_t all_threads() { return uint64_t{gridDim.x} * blockDim.x; }

}  // namespace

extern "C" __global__ void fill(fill_parameters p) {
  for (uint64_t i = first_element(); i < p.count; i += all_threads())
    p.data[i] = p.first + static_cast<float>(i);
}

extern "C" __global__ void saxpy(saxpy_parameters p) {
  for (uint64_t i = first_element(); i < p.count; i += all_threads())
    p.y[i] += p.a * p.x[i];
}

extern "C" __global__ void heat_step(heat_parameters p) {
  for (uint64_t i = first_element() + 1; i <= p.count; i += all_threads())
    p.next[i] = heat(p.now, i);
}
