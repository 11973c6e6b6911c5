#include <cub/device/device_scan.cuh>

#include "bench/libraries/scan_peers.h"
#include "hpe/cuda.hpp"

namespace hpe::bench {

void device_copy(int device, void* output, const void* input, std::size_t bytes) {
  const std::span<char> from(static_cast<char*>(const_cast<void*>(input)), bytes),
      to(static_cast<char*>(output), bytes);
  enqueue(
      device,
      [&](cudaStream_t stream) { return cudaMemcpyAsync(output, input, bytes, cudaMemcpyDeviceToDevice, stream); },
      in(from), out(to));
}

struct cub_sum::state {
  int device;
  std::uint64_t length, problems;
  array<char> workspace;
};

bool cub_sum::there() { return true; }

cub_sum::cub_sum(int device, std::uint64_t length, std::uint64_t problems)
    : state_(new state{device, length, problems, {}}) {
  std::size_t bytes = 0;
  const std::int32_t* input = nullptr;
  std::int32_t* output = nullptr;
  if (const auto failed = cub::DeviceScan::InclusiveSum(nullptr, bytes, input, output, length))
    throw error(HPE_ERROR_SYSTEM, cudaGetErrorString(failed));
  state_->workspace = array<char>(bytes, on_device(device));
}

cub_sum::~cub_sum() { delete state_; }

void cub_sum::run(const std::int32_t* input, std::int32_t* output) {
  const std::size_t count = state_->length * state_->problems;
  enqueue(
      state_->device,
      [&](cudaStream_t stream) {
        std::size_t bytes = state_->workspace.size();
        for (std::uint64_t g = 0; g < state_->problems; ++g) {
          const std::uint64_t at = g * state_->length;
          const auto failed = cub::DeviceScan::InclusiveSum(state_->workspace.data(), bytes, input + at, output + at,
                                                            state_->length, stream);
          if (failed != cudaSuccess) return failed;
        }
        return cudaSuccess;
      },
      in(std::span(input, count)), out(std::span(output, count)), inout(state_->workspace));
}

}  // namespace hpe::bench
