// A CUDA program as you might have it on your disk; it does not use hpe.

#include <cstdio>
#include <cstdlib>
#include <vector>

__global__ void add(const float* a, const float* b, float* c, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) c[i] = a[i] + b[i];
}

void check(cudaError_t result) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "vector_add: %s\n", cudaGetErrorString(result));
  std::exit(1);
}

int main() {
  const int count = 1 << 20;
  const size_t bytes = count * sizeof(float);
  std::vector<float> host(count, 1.5f);
  float *a, *b, *c;
  check(cudaMalloc(&a, bytes));
  check(cudaMalloc(&b, bytes));
  check(cudaMalloc(&c, bytes));
  check(cudaMemcpy(a, host.data(), bytes, cudaMemcpyHostToDevice));
  check(cudaMemcpy(b, host.data(), bytes, cudaMemcpyHostToDevice));
  add<<<(count + 255) / 256, 256>>>(a, b, c, count);
  check(cudaGetLastError());
  check(cudaMemcpy(host.data(), c, bytes, cudaMemcpyDeviceToHost));

  cudaDeviceProp device;
  check(cudaGetDeviceProperties(&device, 0));
  std::printf("c[0] = %g on %s\n", host[0], device.name);
  check(cudaFree(a));
  check(cudaFree(b));
  check(cudaFree(c));
  return 0;
}
