#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>

#include "runtime/base/error.h"

namespace hpe::device {

/// The bytes of a device's memory that this process may map, and those that it has mapped. Thread-safe.
class capacity {
 public:
  /// has: the device's memory. limit: the most bytes of it that this process may map; 0: all (HPE_DEVICE_MEMORY).
  capacity(std::size_t has, std::size_t limit) noexcept : total_(limit == 0 ? has : std::min(has, limit)) {}

  [[nodiscard]] std::size_t total() const noexcept { return total_; }
  [[nodiscard]] std::size_t free() const noexcept { return total_ - used_.load(); }

  /// Takes bytes for a new mapping. Throws HPE_ERROR_OUT_OF_MEMORY, with the sizes, if they are not free.
  void take(unsigned device, std::size_t bytes) {
    std::size_t used = used_.load();
    do {
      HPE_REQUIRE(bytes <= total_ - used, HPE_ERROR_OUT_OF_MEMORY,
                  "device {} has {} bytes of memory left of {}; {} were asked for (HPE_DEVICE_MEMORY, and "
                  "HPE_SOFT_MEMORY for soft devices, set how much there is)",
                  device, total_ - used, total_, bytes);
    } while (!used_.compare_exchange_weak(used, used + bytes));
  }
  /// Gives back the bytes of a mapping.
  void give(std::size_t bytes) noexcept { used_ -= bytes; }

 private:
  const std::size_t total_;
  std::atomic<std::size_t> used_{0};
};

}  // namespace hpe::device
