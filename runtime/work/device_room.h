#pragma once

/// How much memory of each device data may use, the sizes of pieces and parts that follow, and the errors if data does
/// not fit. Thread-safe.

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/counters.h"
#include "runtime/base/granule.h"
#include "runtime/coherence/region.h"
#include "runtime/device/device.h"
#include "runtime/work/accesses.h"

namespace hpe::work {

/// Returns the part of an error message that tells why work uses this memory, and how the program could need less.
[[nodiscard]] std::string how_to_need_less(std::span<const device_access> accesses);

class device_room {
 public:
  device_room(device::device_set& devices, const counters& count)
      : devices_(devices), count_(count), withheld_(devices.size()) {}

  /// How many bytes of a device's memory data may use.
  [[nodiscard]] std::uint64_t most_of(unsigned home) const;
  /// Like most_of, but without the memory that the driver, the program's libraries and other programs use.
  [[nodiscard]] std::uint64_t most_now(unsigned home) const;

  /// The bytes of a device that the driver has allocated for the program, so that data cannot use them.
  [[nodiscard]] std::uint64_t withheld(unsigned home) const noexcept { return withheld_[home].load(); }
  void withhold(unsigned home, std::uint64_t bytes) noexcept { withheld_[home] += bytes; }
  void restore(unsigned home, std::uint64_t bytes) noexcept { withheld_[home] -= bytes; }

  /// The size of the pieces in which data is brought in and evicted, for a region with these homes; at most `most`.
  [[nodiscard]] std::uint64_t piece_size(std::span<const std::uint16_t> homes, std::uint64_t most) const;
  /// The largest number of bytes of a region that one part of a long copy should use, so that several parts fit into
  /// device memory.
  [[nodiscard]] std::uint64_t most_for_a_copy(const coherence::region& r) const;

  /// Throw HPE_ERROR_OUT_OF_MEMORY: work with these accesses needs more bytes of a device at once than the device has
  /// for data, or no data of this process can make room for more bytes.
  [[noreturn]] void throw_too_large(unsigned home, std::uint64_t bytes, std::span<const device_access> accesses) const;
  [[noreturn]] void throw_full(unsigned home, std::uint64_t bytes) const;

 private:
  static constexpr std::uint64_t least_piece = granule_size;
  // Mapping and unmapping a piece takes the CUDA driver about a tenth of a millisecond, regardless of the piece's size.
  static constexpr std::uint64_t largest_piece = std::uint64_t{64} << 20;
  static constexpr std::uint64_t pieces_of_a_device = 64;

  device::device_set& devices_;
  const counters& count_;
  std::vector<std::atomic<std::uint64_t>> withheld_;  // by device
};

}  // namespace hpe::work
