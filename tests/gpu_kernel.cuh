#pragma once

/// Support for the tests' kernels on GPUs, on which a tile of the launch is a block of threads.

#include <cstdint>

namespace gpu_test {

__device__ inline std::uint64_t tile() {
  return blockIdx.x + std::uint64_t{gridDim.x} * (blockIdx.y + std::uint64_t{gridDim.y} * blockIdx.z);
}

struct part {
  std::uint64_t begin;
  std::uint64_t end;
};

/// Returns the elements that this block processes if all blocks process equal parts.
__device__ inline part my_part(std::uint64_t count) {
  const std::uint64_t tiles = std::uint64_t{gridDim.x} * gridDim.y * gridDim.z;
  return {count * tile() / tiles, count * (tile() + 1) / tiles};
}

/// Calls body for each element of this block's part. The block's threads divide the elements among themselves.
template <class Body>
__device__ void for_my_part(std::uint64_t count, Body body) {
  const part mine = my_part(count);
  for (std::uint64_t i = mine.begin + threadIdx.x; i < mine.end; i += blockDim.x) body(i);
}

__device__ inline std::uint64_t nanoseconds() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

__device__ inline void sleep_us(std::uint64_t us) {
  if (us == 0) return;
  const std::uint64_t begin = nanoseconds();
  while (nanoseconds() - begin < us * 1000) __nanosleep(1000);
}

}  // namespace gpu_test
