// A minimal CUDA program, with memory, a copy and a kernel. Prints whether the result is right.
#include "tests/interpose/programs/check.h"

__global__ void twice(int* p) { p[threadIdx.x] *= 2; }

int main() {
  int host[64], *device;
  for (int i = 0; i < 64; ++i) host[i] = i - 5;
  CHECK(cudaMalloc(&device, sizeof host));
  CHECK(cudaMemcpy(device, host, sizeof host, cudaMemcpyHostToDevice));
  twice<<<1, 64>>>(device);
  CHECK(cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 64; ++i)
    if (host[i] != 2 * (i - 5)) {
      std::printf("small: WRONG at %d: %d\n", i, host[i]);
      return 1;
    }
  std::printf("small: right\n");
}
