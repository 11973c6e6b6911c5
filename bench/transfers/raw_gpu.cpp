#include "bench/transfers/raw_gpu.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

#include "tests/core/kernels.h"

namespace hpe::bench {

std::uint32_t fresh_seed() {
  static std::mt19937 random(std::random_device{}());
  return random();
}

raw_gpu::raw_gpu(int number) {
  CALL(cuInit, 0);
  CALL(cuDeviceGet, &device, number);
  CALL(cuDevicePrimaryCtxRetain, &context_, device);
  use();
  CALL(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
  CALL(cuMemAlloc, &memory, stream_bytes);
  for (CUevent& e : copied_) CALL(cuEventCreate, &e, CU_EVENT_DISABLE_TIMING);
  void* const kernels = ::dlopen(test_kernels_path(), RTLD_NOW);
  if (kernels == nullptr) {
    std::fprintf(stderr, "%s (HPE_TEST_KERNELS is the path of libhpe-test-kernels.so)\n", ::dlerror());
    std::exit(EXIT_FAILURE);
  }
  CUmodule module = nullptr;
  CALL(cuModuleLoadData, &module, ::dlsym(kernels, "hpe_cuda_image"));
  CALL(cuModuleGetFunction, &fill_, module, "fill");
  CALL(cuModuleGetFunction, &nothing_, module, "nothing");
}

void raw_gpu::use() const { CALL(cuCtxSetCurrent, context_); }

void raw_gpu::finish() const { CALL(cuStreamSynchronize, stream); }

void raw_gpu::up(CUdeviceptr to, const void* from, std::size_t bytes) const {
  CALL(cuMemcpyHtoDAsync, to, from, bytes, stream);
}

void raw_gpu::down(void* to, CUdeviceptr from, std::size_t bytes) const {
  CALL(cuMemcpyDtoHAsync, to, from, bytes, stream);
}

void raw_gpu::fill(void* data, std::size_t bytes) const {
  constexpr unsigned tiles = 1024;
  fill_parameters p{static_cast<std::uint32_t*>(data), bytes / 4, fresh_seed()};
  void* parameters[] = {&p};
  CALL(cuLaunchKernel, fill_, tiles, 1, 1, 256, 1, 1, 0, stream, parameters, nullptr);
}

void raw_gpu::nothing() const {
  crash_parameters p{nullptr};
  void* parameters[] = {&p};
  CALL(cuLaunchKernel, nothing_, 1, 1, 1, 256, 1, 1, 0, stream, parameters, nullptr);
}

void raw_gpu::up_by_hand(CUdeviceptr to, const std::byte* from, std::size_t bytes,
                         const pinned_buffer& two_buffers) const {
  for (std::size_t at = 0, n = 0; at < bytes; at += by_hand_buffer, ++n) {
    const std::size_t size = std::min(by_hand_buffer, bytes - at);
    std::byte* const buffer = two_buffers.data() + n % 2 * by_hand_buffer;
    if (n >= 2) CALL(cuEventSynchronize, copied_[n % 2]);
    std::memcpy(buffer, from + at, size);
    up(to + at, buffer, size);
    CALL(cuEventRecord, copied_[n % 2], stream);
  }
  finish();
}

void raw_gpu::down_by_hand(std::byte* to, CUdeviceptr from, std::size_t bytes, const pinned_buffer& two_buffers) const {
  const auto start = [&](std::size_t at, std::size_t n) {
    down(two_buffers.data() + n % 2 * by_hand_buffer, from + at, std::min(by_hand_buffer, bytes - at));
    CALL(cuEventRecord, copied_[n % 2], stream);
  };
  start(0, 0);
  for (std::size_t at = 0, n = 0; at < bytes; at += by_hand_buffer, ++n) {
    if (at + by_hand_buffer < bytes) start(at + by_hand_buffer, n + 1);
    CALL(cuEventSynchronize, copied_[n % 2]);
    std::memcpy(to + at, two_buffers.data() + n % 2 * by_hand_buffer, std::min(by_hand_buffer, bytes - at));
  }
}

}  // namespace hpe::bench
