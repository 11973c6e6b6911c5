// A library of kernels that a program without CUDA code opens at run time.
#include "tests/interpose/programs/check.h"

__global__ void plus(int* p, int n, int k) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] += k;
}

extern "C" int add_on_device(int* data, int n, int k) {
  int* device;
  CHECK(cudaMalloc(&device, n * sizeof(int)));
  CHECK(cudaMemcpy(device, data, n * sizeof(int), cudaMemcpyHostToDevice));
  plus<<<(n + 63) / 64, 64>>>(device, n, k);
  CHECK(cudaMemcpy(data, device, n * sizeof(int), cudaMemcpyDeviceToHost));
  return cudaFree(device);
}
