// The host and the device use managed memory in turn. The driver keeps the memory coherent.
#include "check.h"

__global__ void twice(int* p, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] *= 2;
}

int main() {
  constexpr int n = 5 << 20;
  int *p, *d;
  CHECK(cudaMallocManaged(&p, n * sizeof *p));
  CHECK(cudaMalloc(&d, n * sizeof *d));
  for (int i = 0; i < n; ++i) p[i] = i;
  for (int round = 0; round < 3; ++round) {
    twice<<<(n + 255) / 256, 256>>>(p, n);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < n; i += 1000) p[i] += 1;
    CHECK(cudaMemcpy(d, p, n * sizeof *p, cudaMemcpyDefault));
    CHECK(cudaMemcpy(p, d, n * sizeof *p, cudaMemcpyDefault));
    std::printf("round %d: %016llx\n", round, (unsigned long long)digest(p, n * sizeof *p));
  }
  CHECK(cudaFree(p));
}
