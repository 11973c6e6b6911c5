// A program of two files whose device code is linked (-rdc=true). Uses functions, variables and managed variables of
// the other file.
#include "tests/interpose/programs/check.h"

extern __device__ int twist(int value);
extern __device__ int calls;
extern __constant__ int addend;
extern __managed__ int managed_sum;

__global__ void use(int* p) {
  p[threadIdx.x] = twist(p[threadIdx.x]) + addend;
  atomicAdd(&managed_sum, p[threadIdx.x]);
}

extern void set_addend(int value);
extern int read_calls();

int main() {
  int host[100], *device, sum = 7, wrong = 0;
  for (int i = 0; i < 100; ++i) host[i] = i;
  CHECK(cudaMalloc(&device, sizeof host));
  CHECK(cudaMemcpy(device, host, sizeof host, cudaMemcpyHostToDevice));
  set_addend(11);
  managed_sum = sum;
  use<<<1, 100>>>(device);
  CHECK(cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 100; ++i) {
    wrong += host[i] != i * 3 - 1 + 11;
    sum += host[i];
  }
  std::printf("parts: %d wrong, %d calls, %d of %d: %s\n", wrong, read_calls(), managed_sum, sum,
              wrong == 0 && read_calls() == 100 && managed_sum == sum ? "right" : "WRONG");
}
