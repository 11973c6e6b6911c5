#pragma once

/// How copies through staging buffers go best on this machine: found by trying, once, and kept in a file of the user.

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
  unsigned threads = 1;   ///< that copy between pageable memory and a staging buffer, the calling one among them

  friend bool operator==(const calibration&, const calibration&) = default;
};

/// Copies between pageable memory and a device in both directions with pieces up to `size` bytes and with up to
/// `most_threads` threads, for about 60 ms. Takes the fewest threads and the smallest piece that are nearly as fast as
/// others. buffers: staging buffers of `size` bytes, at least one, the caller's; device_memory: as many bytes of a
/// device's. settle: what the threads do first. Throws what copies throw.
[[nodiscard]] calibration calibrate(
    device::device_set& devices, unsigned home, std::byte* device_memory, std::span<std::byte* const> buffers,
    std::size_t size, unsigned most_threads, const std::function<void()>& settle = [] {});

/// What was found earlier. One file for each machine, driver and kind of device, in $XDG_CACHE_HOME/hpe or
/// ~/.cache/hpe. Files that cannot be read, or make no sense, count as none; those that cannot be written are not.
class calibration_cache {
 public:
  /// folder: empty where there is no place for caches.
  calibration_cache(std::filesystem::path folder, std::string key);
  /// For this user, this machine, and the devices of a set.
  [[nodiscard]] static calibration_cache of(const device::device_set& devices, const device::properties& first);

  [[nodiscard]] std::optional<calibration> load(std::size_t largest_piece, unsigned most_threads) const;
  void store(const calibration& found) const;

 private:
  [[nodiscard]] std::filesystem::path file() const;

  std::filesystem::path folder_;
  std::string key_;
};

}  // namespace hpe::transfer
