// The kernels of kernels.cpp for GPUs.

#include "tests/gpu_kernel.cuh"
#include "tests/stress/kernels.h"

using gpu_test::for_my_part;
using gpu_test::sleep_us;

extern "C" {

__global__ void pattern(pattern_parameters p) {
  sleep_us(p.delay);
  for_my_part(p.count, [&](std::uint64_t i) { p.data[i] = pattern_at(p.seed, i); });
}

__global__ void add_bytes(add_bytes_parameters p) {
  sleep_us(p.delay);
  for_my_part(p.count, [&](std::uint64_t i) { p.data[i] = static_cast<std::uint8_t>(p.data[i] + p.by); });
}

__global__ void scatter(scatter_parameters p) {
  sleep_us(p.delay);
  for_my_part((p.count + p.stride - 1) / p.stride, [&](std::uint64_t k) { p.data[k * p.stride] = p.value; });
}

__global__ void combine(combine_parameters p) {
  sleep_us(p.delay);
  for_my_part(p.count, [&](std::uint64_t i) { p.result[i] = combined(p.source[i], p.key); });
}

__global__ void digest(digest_parameters p) {
  if (gpu_test::tile() != 0 || threadIdx.x != 0) return;
  sleep_us(p.delay);
  *p.result = digest_of(p.source, p.count);
}

}  // extern "C"
