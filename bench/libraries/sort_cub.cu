#include <cub/device/device_radix_sort.cuh>

#include "bench/libraries/sort_peers.h"
#include "hpe/cuda.hpp"

namespace hpe::bench {

bool cub_there() { return true; }

struct cub_sort::state {
  int device;
  array<std::uint32_t> other;
  std::size_t bytes;
  array<char> workspace;
};

cub_sort::cub_sort(int device, std::size_t count)
    : state_(new state{device, array<std::uint32_t>(count, on_device(device)), 0, {}}) {
  cub::DoubleBuffer<std::uint32_t> buffers(state_->other.data(), state_->other.data());
  cub::DeviceRadixSort::SortKeys(nullptr, state_->bytes, buffers, count);
  state_->workspace = array<char>(state_->bytes, on_device(device));
}

cub_sort::~cub_sort() { delete state_; }

void cub_sort::run(std::uint32_t* keys) {
  const std::size_t count = state_->other.size();
  enqueue(
      state_->device,
      [&](cudaStream_t stream) {
        cub::DoubleBuffer<std::uint32_t> buffers(keys, state_->other.data());
        return cub::DeviceRadixSort::SortKeys(state_->workspace.data(), state_->bytes, buffers, count, 0, 32, stream);
      },
      inout(std::span(keys, count)), inout(state_->other), inout(state_->workspace));
}

}  // namespace hpe::bench
