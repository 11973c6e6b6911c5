// The kernels of test_kernels.cpp for GPUs.

#include "tests/core/test_kernels.h"
#include "tests/gpu_kernel.cuh"

using gpu_test::for_my_part;

extern "C" {

__global__ void fill(fill_parameters p) {
  for_my_part(p.count, [&](std::uint64_t i) { p.data[i] = p.first + static_cast<std::uint32_t>(i); });
}

__global__ void add(add_parameters p) {
  for_my_part(p.count, [&](std::uint64_t i) { p.result[i] = p.left[i] + p.right[i]; });
}

__global__ void increment(increment_parameters p) {
  gpu_test::sleep_us(p.sleep_microseconds);
  for_my_part(p.count, [&](std::uint64_t i) { p.data[i] += p.by; });
}

__global__ void meet(meet_parameters p) {
  if (threadIdx.x != 0) return;
  atomicAdd_system(p.arrived, 1U);
  while (atomicAdd_system(p.arrived, 0U) < p.all) __nanosleep(100);
  p.results[gpu_test::tile()] = atomicAdd_system(p.arrived, 0U);
}

__global__ void nothing(crash_parameters) {}

// On a GPU, a division by zero returns some number and the kernel continues.
__global__ void divide(divide_parameters p) { *p.result = 1 / p.by; }

__global__ void crash(crash_parameters p) { *p.at = 1; }

}  // extern "C"
