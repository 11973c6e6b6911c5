#include "runtime/transfer/staging.h"

#include <algorithm>
#include <utility>

namespace hpe::transfer {

staging_ring::staging_ring(device::device_set& devices, std::byte* memory, std::size_t buffer_size, std::size_t count)
    : devices_(devices), buffer_size_(buffer_size) {
  free_.reserve(count);
  for (std::size_t i = 0; i < count; ++i) free_.push_back({memory + i * buffer_size, {}});
}

std::byte* staging_ring::take() {
  returned_buffer taken;
  {
    unique_lock lock(mutex_);
    returned_.wait(lock, [&]() HPE_REQUIRES(mutex_) { return !free_.empty(); });
    taken = take_best();
  }
  return ready(taken);
}

std::byte* staging_ring::try_take() {
  returned_buffer taken;
  {
    const lock_guard lock(mutex_);
    if (free_.empty()) return nullptr;
    taken = take_best();
  }
  return ready(taken);
}

staging_ring::returned_buffer staging_ring::take_best() {
  // Prefer a buffer whose device work has finished, so that copies in one direction of the link do not wait for a
  // buffer that the other direction still uses.
  const auto idle = std::find_if(free_.begin(), free_.end(),
                                 [&](const returned_buffer& e) { return devices_.reached(e.busy_until); });
  const auto best = idle != free_.end() ? idle : free_.begin();
  const returned_buffer taken = *best;
  free_.erase(best);
  return taken;
}

std::byte* staging_ring::ready(const returned_buffer& taken) {
  devices_.wait(taken.busy_until, std::chrono::steady_clock::time_point::max());
  return taken.buffer;
}

void staging_ring::give_back(std::byte* buffer, timepoint busy_until) noexcept {
  {
    const lock_guard lock(mutex_);
    free_.push_back({buffer, busy_until});
  }
  returned_.notify_one();
}

std::size_t next_chunk(std::size_t done, std::size_t left, std::size_t most) noexcept {
  constexpr std::size_t unit = std::size_t{512} << 10;
  const std::size_t least = std::min(unit, most);
  return std::min(left, std::clamp(std::min(done, left / 2) / unit * unit, least, most));
}

staged::staged(staged&& other) noexcept
    : ring_(other.ring_),
      data_(std::exchange(other.data_, nullptr)),
      size_(other.size_),
      busy_until_(other.busy_until_) {}

staged::~staged() {
  if (data_ != nullptr) ring_->give_back(data_, busy_until_);
}

}  // namespace hpe::transfer
