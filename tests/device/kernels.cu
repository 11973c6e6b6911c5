// The kernels for the tests of devices, for GPUs.

#include "tests/device/kernels.h"
#include "tests/gpu_kernel.cuh"

using gpu_test::sleep_us;
using gpu_test::tile;

namespace {

__device__ bool first_thread() { return tile() == 0 && threadIdx.x == 0; }

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
