// A library with a statically linked CUDA runtime and without kernels, like modules in Python packages.
#include <cuda_runtime_api.h>

#include <cstdio>

extern "C" __attribute__((visibility("default"))) int add_on_device(int* /*data*/, int /*n*/, int /*k*/) {
  void* memory = nullptr;
  const cudaError_t result = cudaMalloc(&memory, 4);
  std::printf("cudaMalloc: %d\n", static_cast<int>(result));
  return result;
}
