#pragma once

/// How much memory of each device data may use, the sizes of pieces and parts that follow, and the errors if data does
/// not fit. Thread-safe.

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/counters.h"
#include "runtime/base/error.h"
#include "runtime/base/granule.h"
#include "runtime/coherence/region.h"
#include "runtime/device/device.h"
#include "runtime/node/device_share.h"
#include "runtime/work/accesses.h"

namespace hpe::work {

/// Returns the part of an error message that tells why work uses this memory, and how the program could need less.
[[nodiscard]] inline std::string how_to_need_less(std::span<const device_access> accesses);

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
  // On one H200, the CUDA driver takes 33 us to map a piece of 2 to 128 MiB, but 1040 us while a copy to the host runs.
  // The link takes 1200 us to copy 64 MiB. So the link need not wait for the driver if pieces have 64 MiB.
  static constexpr std::uint64_t largest_piece = std::uint64_t{64} << 20;
  static constexpr std::uint64_t pieces_of_a_device = 32;

  device::device_set& devices_;
  const counters& count_;
  std::vector<std::atomic<std::uint64_t>> withheld_;  // by device
};

inline std::uint64_t device_room::most_of(unsigned home) const {
  const device::device& it = devices_.at(home);
  const std::uint64_t total = it.info().memory_bytes;
  return total - std::min<std::uint64_t>(total, it.info().spare_bytes + withheld_[home].load());
}

inline std::uint64_t device_room::most_now(unsigned home) const {
  const device::device& it = devices_.at(home);
  if (it.share() != nullptr) return most_of(home);
  const std::uint64_t has = it.memory().free + count_.device_memory[home].load();
  return std::min<std::uint64_t>(most_of(home), has - std::min<std::uint64_t>(has, it.info().spare_bytes));
}

inline std::uint64_t device_room::piece_size(std::span<const std::uint16_t> homes, std::uint64_t most) const {
  std::uint64_t least = largest_piece * pieces_of_a_device;
  for (const std::uint16_t home : homes)
    if (home < devices_.size()) least = std::min<std::uint64_t>(least, devices_.at(home).info().memory_bytes);
  least = std::min(least / pieces_of_a_device, most);
  return std::clamp(std::bit_floor(std::max<std::uint64_t>(least, 1)), least_piece, largest_piece);
}

inline std::uint64_t device_room::most_for_a_copy(const coherence::region& r) const {
  std::uint64_t least = ~std::uint64_t{0};
  for (std::uint64_t homes = r.home_set(); homes != 0; homes &= homes - 1)
    least =
        std::min<std::uint64_t>(least, devices_.at(static_cast<unsigned>(std::countr_zero(homes))).info().memory_bytes);
  constexpr std::uint64_t part = 8;
  return std::max<std::uint64_t>(least / part / granule_size * granule_size, granule_size);
}

inline std::string how_to_need_less(std::span<const device_access> accesses) {
  if (std::ranges::any_of(accesses, &device_access::only_mapped))
    return "it may follow pointers in memory to all allocations; raise HPE_HOST_MEMORY, or free allocations; with "
           "hpe run --scope args, which is for kernels that use only the allocations to which their parameters point, "
           "only these must fit";
  if (std::ranges::any_of(accesses, &device_access::if_alive))
    return "it may use all allocations, because it was queued without a list of its accesses (HPE_ALL, or a kernel of "
           "a CUDA program that hpe does not know); with a list, or hpe run --scope args, only the named data must fit";
  return fmt::format(
      "it names {} range{}; a launch over a part of the data, or accesses of only the bytes that it uses "
      "(hpeAccess.size), need less",
      accesses.size(), accesses.size() == 1 ? "" : "s");
}

inline void device_room::throw_too_large(unsigned home, std::uint64_t bytes,
                                         std::span<const device_access> accesses) const {
  HPE_THROW(HPE_ERROR_OUT_OF_MEMORY, "the work needs {} bytes on device {} at once, which gives this process {}: {}",
            bytes, home, most_now(home), how_to_need_less(accesses));
}

inline void device_room::throw_full(unsigned home, std::uint64_t bytes) const {
  const device::memory_usage memory = devices_.at(home).memory();
  const node::device_share* const share = devices_.at(home).share();
  HPE_THROW(HPE_ERROR_OUT_OF_MEMORY,
            "device {} has {} bytes of memory left of {}, and {} more are needed; no data of this process can make "
            "room for them{}",
            home, memory.free, memory.total, bytes, share == nullptr ? "" : "; " + share->others_in_words());
}

}  // namespace hpe::work
