#pragma once

/// Measures once which copies through staging buffers are fastest on this machine, and keeps the result in a file.

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "runtime/device/device.h"

namespace hpe::transfer {

struct calibration {
  std::size_t piece = 0;  ///< bytes of one command
  unsigned threads = 1;   ///< threads that copy between pageable memory and staging buffers, including the calling one

  friend bool operator==(const calibration&, const calibration&) = default;
};

/// Copies between pageable memory and a device in both directions, with pieces of up to `size` bytes and up to
/// `most_threads` threads, for about 60 ms. Chooses fewer threads only if they are clearly faster, and the smallest
/// piece that is nearly as fast. buffers: staging buffers of `size` bytes, at least one, owned by the caller;
/// device_memory: `size` bytes of the device; settle: called first in each thread. Throws the errors of copies.
[[nodiscard]] calibration calibrate(
    device::device_set& devices, unsigned home, std::byte* device_memory, std::span<std::byte* const> buffers,
    std::size_t size, unsigned most_threads, const std::function<void()>& settle = [] {});

/// The result of an earlier calibration. One file for each machine, driver and kind of device, in $XDG_CACHE_HOME/hpe
/// or ~/.cache/hpe. An unreadable or malformed file is ignored. If the file cannot be written, the result is not saved.
class calibration_cache {
 public:
  /// folder: empty if there is no folder for caches.
  calibration_cache(std::filesystem::path folder, std::string key);
  /// The cache for this user, this machine, and the devices of a set.
  [[nodiscard]] static calibration_cache of(const device::device_set& devices, const device::properties& first);

  [[nodiscard]] std::optional<calibration> load(std::size_t largest_piece, unsigned most_threads) const;
  void store(const calibration& found) const;

 private:
  [[nodiscard]] std::filesystem::path file() const;

  std::filesystem::path folder_;
  std::string key_;
};

}  // namespace hpe::transfer
