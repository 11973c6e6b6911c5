#include "kernels.h"

extern __device__ int linked_variable;
__device__ int linked_function(int value);

namespace {
__global__ void linked(int* out) { *out = linked_function(2) + linked_variable; }
}  // namespace

const void* kernel_linked() { return reinterpret_cast<const void*>(linked); }
