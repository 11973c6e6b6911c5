// The other file of parts_main.cu.
#include "tests/interpose/programs/check.h"

__device__ int calls;
__constant__ int addend = 5;
__managed__ int managed_sum = 3;

__device__ int twist(int value) {
  atomicAdd(&calls, 1);
  return value * 3 - 1;
}

void set_addend(int value) { CHECK(cudaMemcpyToSymbol(addend, &value, sizeof value)); }

int read_calls() {
  int result = -1;
  CHECK(cudaMemcpyFromSymbol(&result, calls, sizeof result));
  return result;
}
