// Kernels that node-test-process launches over its devices. kernels.ptx is made from this file:
//   nvcc -ptx -arch=compute_80 -std=c++17 -o kernels.ptx kernels.cu

#include <cstdint>

extern "C" __global__ void add(uint32_t* words, uint64_t count, uint32_t by) {
  const uint64_t i = blockIdx.x * static_cast<uint64_t>(blockDim.x) + threadIdx.x;
  if (i < count) words[i] += by;
}

// Each block reads words at positions that other blocks, and so other devices, may process.
extern "C" __global__ void mix(uint32_t* words, const uint32_t* others, uint64_t count, uint32_t key) {
  for (uint64_t i = blockIdx.x * static_cast<uint64_t>(blockDim.x) + threadIdx.x; i < count;
       i += static_cast<uint64_t>(gridDim.x) * blockDim.x)
    words[i] = 3 * words[i] + others[i] + key;
}

// The threads of each block together read all of `others`, so each device reads memory of all devices.
extern "C" __global__ void sum(uint32_t* words, const uint32_t* others, uint64_t count) {
  uint32_t result = 0;
  for (uint64_t i = threadIdx.x; i < count; i += blockDim.x) result += others[i];
  words[blockIdx.x * static_cast<uint64_t>(blockDim.x) + threadIdx.x] = result;
}
