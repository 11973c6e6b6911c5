#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>

#include "runtime/base/error.h"
#include "runtime/node/device_share.h"

namespace hpe::device {

/// How many bytes of a device's memory this process may map, and how many it has mapped. Thread-safe.
class capacity {
 public:
  /// Returns how many of a device's `has` bytes of memory hpe may use. `limit`: the value of HPE_DEVICE_MEMORY; 0: no
  /// limit.
  [[nodiscard]] static std::size_t limited(std::size_t has, std::size_t limit) noexcept {
    return limit == 0 ? has : std::min(has, limit);
  }

  /// `share`: how processes divide these bytes; nullptr if no other process uses them (HPE_SHARE).
  capacity(std::size_t total, node::device_share* share) noexcept
      : total_(share == nullptr ? total : std::min<std::size_t>(total, share->total())), share_(share) {}

  [[nodiscard]] std::size_t total() const noexcept { return total_; }
  [[nodiscard]] std::size_t free() const noexcept {
    const std::size_t left = total_ - used_.load();
    return share_ == nullptr ? left : std::min<std::size_t>(left, share_->free());
  }
  [[nodiscard]] node::device_share* share() const noexcept { return share_; }

  /// Takes bytes for a new mapping. Throws HPE_ERROR_OUT_OF_MEMORY if they are not free; the message states the sizes.
  void take(unsigned device, std::size_t bytes) {
    std::size_t used = used_.load();
    do {
      HPE_REQUIRE(bytes <= total_ - used, HPE_ERROR_OUT_OF_MEMORY,
                  "device {} has {} of {} bytes of memory left; {} bytes were requested (HPE_DEVICE_MEMORY, and "
                  "HPE_SOFT_MEMORY for soft devices, set the total)",
                  device, total_ - used, total_, bytes);
    } while (!used_.compare_exchange_weak(used, used + bytes));
    if (share_ == nullptr || share_->take(bytes)) return;
    used_ -= bytes;
    HPE_THROW(HPE_ERROR_OUT_OF_MEMORY, "device {} has {} of {} bytes of memory left; {} bytes were requested; {}",
              device, free(), total_, bytes, share_->others_in_words());
  }
  /// Gives back the bytes of a mapping.
  void give(std::size_t bytes) noexcept {
    used_ -= bytes;
    if (share_ != nullptr) share_->give(bytes);
  }

 private:
  const std::size_t total_;
  node::device_share* const share_;
  std::atomic<std::size_t> used_{0};
};

}  // namespace hpe::device
