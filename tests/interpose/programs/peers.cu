// Copies between all pairs of devices, with and without peer access, and runs kernels on each device.
#include <vector>

#include "check.h"

__global__ void add(int* p, int n, int k) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] += k;
}

int main() {
  int devices = 0;
  CHECK(cudaGetDeviceCount(&devices));
  constexpr int n = 4 << 20;
  constexpr std::size_t bytes = n * sizeof(int);
  std::vector<int*> memory(devices);
  std::vector<int> host(n);
  for (int d = 0; d < devices; ++d) {
    CHECK(cudaSetDevice(d));
    CHECK(cudaMalloc(&memory[d], bytes));
    for (int i = 0; i < n; ++i) host[i] = i + d;
    CHECK(cudaMemcpy(memory[d], host.data(), bytes, cudaMemcpyHostToDevice));
  }
  for (const bool direct : {false, true}) {
    for (int d = 0; d < devices; ++d) {
      const int to = (d + 1) % devices;
      CHECK(cudaSetDevice(to));
      if (direct && to != d) CHECK(cudaDeviceEnablePeerAccess(d, 0));
      CHECK(cudaMemcpyPeer(memory[to], to, memory[d], d, bytes / 2));
      CHECK(cudaMemcpy(memory[to] + n / 2, memory[d], bytes / 4, cudaMemcpyDefault));
      add<<<(n + 255) / 256, 256>>>(memory[to], n, d + 1);
      CHECK(cudaMemcpy(host.data(), memory[to], bytes, cudaMemcpyDeviceToHost));
      std::printf("%s %d -> %d: %016llx\n", direct ? "direct" : "staged", d, to,
                  (unsigned long long)digest(host.data(), bytes));
    }
  }
  CHECK(cudaDeviceReset());
  CHECK(cudaMalloc(&memory[0], bytes));
  CHECK(cudaMemset(memory[0], 5, bytes));
  CHECK(cudaMemcpy(host.data(), memory[0], bytes, cudaMemcpyDeviceToHost));
  std::printf("after a reset: %016llx\n", (unsigned long long)digest(host.data(), bytes));
}
