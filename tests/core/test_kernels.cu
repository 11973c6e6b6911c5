// The kernels of test_kernels.cpp for GPUs: a tile is a block, and its threads share the tile's part of the elements.

#include "tests/core/test_kernels.h"

namespace {

struct part {
  std::uint64_t begin;
  std::uint64_t end;
};

__device__ part my_part(std::uint64_t count) {
  const std::uint64_t tiles = std::uint64_t{gridDim.x} * gridDim.y * gridDim.z;
  const std::uint64_t tile =
      blockIdx.x + std::uint64_t{gridDim.x} * (blockIdx.y + std::uint64_t{gridDim.y} * blockIdx.z);
  return {count * tile / tiles, count * (tile + 1) / tiles};
}

__device__ void sleep_us(std::uint64_t us) {
  std::uint64_t begin;
  std::uint64_t now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
  do {
    __nanosleep(1000);
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  } while (now - begin < us * 1000);
}

}  // namespace

extern "C" {

__global__ void fill(fill_parameters p) {
  const part mine = my_part(p.count);
  for (std::uint64_t i = mine.begin + threadIdx.x; i < mine.end; i += blockDim.x)
    p.data[i] = p.first + static_cast<std::uint32_t>(i);
}

__global__ void add(add_parameters p) {
  const part mine = my_part(p.count);
  for (std::uint64_t i = mine.begin + threadIdx.x; i < mine.end; i += blockDim.x) p.result[i] = p.left[i] + p.right[i];
}

__global__ void increment(increment_parameters p) {
  if (p.sleep_microseconds != 0) sleep_us(p.sleep_microseconds);
  const part mine = my_part(p.count);
  for (std::uint64_t i = mine.begin + threadIdx.x; i < mine.end; i += blockDim.x) p.data[i] += p.by;
}

__global__ void nothing(crash_parameters) {}

__global__ void crash(crash_parameters p) { *p.at = 1; }

}  // extern "C"
