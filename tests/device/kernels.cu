// The kernels for the tests of devices, for GPUs: a tile is a block.

#include "tests/device/kernels.h"

namespace {

__device__ std::uint64_t tile() {
  return blockIdx.x + std::uint64_t{gridDim.x} * (blockIdx.y + std::uint64_t{gridDim.y} * blockIdx.z);
}

__device__ bool first_thread() { return tile() == 0 && threadIdx.x == 0; }

__device__ std::uint64_t nanoseconds() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

__device__ void sleep_us(std::uint64_t us) {
  const std::uint64_t begin = nanoseconds();
  while (nanoseconds() - begin < us * 1000) __nanosleep(1000);
}

}  // namespace

extern "C" {

__global__ void add(add_parameters p) {
  for (std::uint64_t i = threadIdx.x; i < p.per_tile; i += blockDim.x) p.data[tile() * p.per_tile + i] += p.value;
}

__global__ void number_tiles(number_parameters p) {
  if (threadIdx.x == 0)
    p.data[tile()] += 1 + blockIdx.x + std::uint64_t{1000} * blockIdx.y + std::uint64_t{1000000} * blockIdx.z;
}

__global__ void store_last_byte(large_parameters p) {
  if (first_thread()) *p.out = p.filler[sizeof p.filler - 1];
}

__global__ void rest(rest_parameters p) {
  if (first_thread()) sleep_us(p.microseconds);
}

__global__ void rest_and_store(rest_parameters p) {
  if (!first_thread()) return;
  sleep_us(p.microseconds);
  *p.out = p.value;
}

__global__ void load(load_parameters p) {
  if (first_thread()) *p.out = *p.in;
}

__global__ void empty(load_parameters) {}

}  // extern "C"
