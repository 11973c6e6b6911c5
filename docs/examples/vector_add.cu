// A CUDA program as it might be on your disk: it knows nothing of hpe.

#include <cstdio>
#include <vector>

__global__ void add(const float* a, const float* b, float* c, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) c[i] = a[i] + b[i];
}

int main() {
  const int count = 1 << 20;
  const size_t bytes = count * sizeof(float);
  std::vector<float> host(count, 1.5f);
  float *a, *b, *c;
  cudaMalloc(&a, bytes);
  cudaMalloc(&b, bytes);
  cudaMalloc(&c, bytes);
  cudaMemcpy(a, host.data(), bytes, cudaMemcpyHostToDevice);
  cudaMemcpy(b, host.data(), bytes, cudaMemcpyHostToDevice);
  add<<<(count + 255) / 256, 256>>>(a, b, c, count);
  cudaMemcpy(host.data(), c, bytes, cudaMemcpyDeviceToHost);

  cudaDeviceProp device;
  cudaGetDeviceProperties(&device, 0);
  std::printf("c[0] = %g on %s: %s\n", host[0], device.name,
              cudaGetErrorString(cudaGetLastError()));
  cudaFree(a);
  cudaFree(b);
  cudaFree(c);
  return 0;
}
