#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <string>

#include "runtime/base/error.h"
#include "runtime/node/device_share.h"

namespace hpe::device {

/// Counts the bytes of one device's memory that this process has mapped, and limits their number. Thread-safe.
class capacity {
 public:
  /// Returns how many bytes of a device's memory hpe may use. `has`: the size of the device's memory in bytes. `limit`:
  /// the value of HPE_DEVICE_MEMORY in bytes; 0 means no limit.
  [[nodiscard]] static std::size_t limited(std::size_t has, std::size_t limit) noexcept {
    return limit == 0 ? has : std::min(has, limit);
  }

  /// `total`: the largest number of bytes that this process may map. `share`: counts the bytes that all processes
  /// sharing the device have mapped (HPE_SHARE); nullptr if this process does not share the device.
  capacity(std::size_t total, node::device_share* share) noexcept
      : total_(share == nullptr ? total : std::min<std::size_t>(total, share->total())), share_(share) {}

  [[nodiscard]] std::size_t total() const noexcept { return total_; }
  [[nodiscard]] std::size_t free() const noexcept {
    const std::size_t left = total_ - used_.load();
    return share_ == nullptr ? left : std::min<std::size_t>(left, share_->free());
  }
  [[nodiscard]] node::device_share* share() const noexcept { return share_; }

  /// Counts `bytes` bytes of a new mapping as used. Throws HPE_ERROR_OUT_OF_MEMORY if fewer bytes are free. `device`:
  /// the device's number, for the error message.
  void take(unsigned device, std::size_t bytes) {
    if (try_take(bytes)) return;
    const std::string why = share_ == nullptr ? "HPE_DEVICE_MEMORY, and HPE_SOFT_MEMORY for soft devices, set the total"
                                              : share_->others_in_words();
    HPE_THROW(HPE_ERROR_OUT_OF_MEMORY, "device {} has {} of {} bytes of memory left; {} bytes were requested; {}",
              device, free(), total_, bytes, why);
  }
  /// Like take, but returns false if fewer bytes are free.
  [[nodiscard]] bool try_take(std::size_t bytes) noexcept {
    std::size_t used = used_.load();
    do {
      if (bytes > total_ - used) return false;
    } while (!used_.compare_exchange_weak(used, used + bytes));
    if (share_ == nullptr || share_->take(bytes)) return true;
    used_ -= bytes;
    return false;
  }
  /// Counts the bytes of a removed mapping as free.
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
