// The program of docs/cuda-without-gpu.md. Each device computes squares and stores square i in cell i * n; CPU code
// reads one square through the device pointer. With a large n, the kernel writes outside of its memory.
//
//   squares <n>
#include <cstdio>
#include <cstdlib>

__global__ void squares(int* p, long n) {
  const long i = blockIdx.x * blockDim.x + threadIdx.x;
  p[i * n] = i * i;
}

int main(int, char** arguments) {
  int devices = 0;
  cudaGetDeviceCount(&devices);
  for (int d = 0; d < devices; ++d) {
    cudaSetDevice(d);
    cudaDeviceProp about;
    cudaGetDeviceProperties(&about, d);
    int* p;
    cudaMalloc(&p, 1024 * sizeof *p);
    squares<<<4, 256>>>(p, std::atol(arguments[1]));
    const cudaError_t result = cudaDeviceSynchronize();
    std::printf("%s: %s\n", about.name, cudaGetErrorString(result));
    if (result == cudaSuccess) std::printf("31 * 31 = %d\n", p[31]);  // CPU code on a device pointer
  }
}
