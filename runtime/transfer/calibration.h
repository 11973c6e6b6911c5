#pragma once

/// The settings with which copies through staging buffers are fastest on this machine. They are measured once and
/// stored in a file.

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "runtime/base/cache_file.h"
#include "runtime/device/device.h"

namespace hpe::transfer {

struct calibration {
  std::size_t chunk = 0;  ///< bytes of each copy command
  unsigned threads = 1;   ///< threads that copy from and to staging buffers, including the calling thread

  friend bool operator==(const calibration&, const calibration&) = default;
};

/// Measures copies between pageable memory and a device in both directions, with chunks of up to `size` bytes and with
/// up to `most_threads` threads, for about 60 ms. Chooses the largest number of threads unless fewer threads are
/// clearly faster, and the smallest chunk that is nearly as fast as the best chunk. buffers: at least one staging
/// buffer of `size` bytes; the caller owns the buffers. device_memory: `size` bytes of the device. settle: each thread
/// calls this function first. Throws the errors of the copies.
[[nodiscard]] calibration calibrate(
    device::device_set& devices, unsigned home, std::byte* device_memory, std::span<std::byte* const> buffers,
    std::size_t size, unsigned most_threads, const std::function<void()>& settle = [] {});

/// Stores the result of a calibration for later processes, in one file for each combination of machine, driver and kind
/// of device (cache_file).
class calibration_cache {
 public:
  /// folder: empty if the user has no folder for caches.
  calibration_cache(std::filesystem::path folder, std::string key);
  /// The cache for the current user, this machine and these devices.
  [[nodiscard]] static calibration_cache of(const device::device_set& devices, const device::properties& first);

  [[nodiscard]] std::optional<calibration> load(std::size_t largest_chunk, unsigned most_threads) const;
  void store(const calibration& found) const;

 private:
  cache_file file_;
};

}  // namespace hpe::transfer
