#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "hpe/hpe.h"
#include "runtime/base/thread_safety.h"
#include "runtime/trace/call_sites.h"

namespace hpe::trace {

/// The kind of a measured event: how bytes were copied, or that CPU code touched data that was not on the host.
enum class way : std::uint8_t {
  up_staged,    ///< to a device, through hpe's pinned buffers
  up_driver,    ///< to a device, by the driver's own copy
  down_staged,  ///< from a device, through hpe's pinned buffers
  down_driver,  ///< from a device, by the driver's own copy
  across,       ///< between two allocations of hpe, queued
  any_staged,   ///< between any two addresses
  any_driver,
  touch,  ///< CPU code faulted on device memory that was not on the host; counts as 0 bytes
};
inline constexpr unsigned way_count = 8;
[[nodiscard]] const char* name_of(way how) noexcept;

/// The transfers and touches of a program, printed when the program ends (HPE_PROFILE). Each process has at most one
/// profile. Thread safe; add() is also safe in signal handlers.
class HPE_API profile {
 public:
  /// Creates the profile of this process unless the process already has a profile. The profile is printed on standard
  /// error when the process exits, and is never destroyed.
  static void start();
  /// Creates a profile that is not printed, unless the process already has a profile.
  static void start_untold();
  /// The profile of this process; nullptr if the process has no profile.
  [[nodiscard]] static profile* active() noexcept { return the_active.load(std::memory_order_acquire); }

  /// Counts a transfer or a touch for the caller's call site. address: the touched address.
  [[gnu::noinline]] void add(way how, std::uint64_t bytes, std::chrono::nanoseconds time,
                             const void* address = nullptr) noexcept;
  /// Counts bytes that moved between a device and the host because CPU code uses them. Must not be called in signal
  /// handlers.
  void moved(std::uintptr_t region, std::uint64_t region_bytes, std::uint64_t bytes, bool to_device);

  /// Records that a launch or CPU code uses the bytes [begin, end) of a region. Must not be called in signal handlers.
  void used(std::uintptr_t region, std::uint64_t region_bytes, std::uint64_t begin, std::uint64_t end);
  /// Records that the calling thread has made an allocation. Must not be called in signal handlers.
  void allocated(std::uintptr_t address);

  /// Returns the profile as lines of text.
  [[nodiscard]] std::string report() const;
  /// Returns the profile as a JSON object, with all places and allocations.
  [[nodiscard]] std::string json() const;

 private:
  struct traffic {
    std::uint64_t region_bytes = 0;
    std::uint64_t to_device = 0;
    std::uint64_t to_host = 0;
    std::uint64_t moves_to_device = 0;
    std::uint64_t moves_to_host = 0;
    std::uint64_t used_begin = ~std::uint64_t{0};
    std::uint64_t used_end = 0;
  };
  using place = std::pair<std::pair<unsigned, std::string>, site>;
  static profile* make();
  [[nodiscard]] std::array<site, way_count> sums() const;
  /// The call sites, merged by place in the source and sorted by time, the longest time first.
  [[nodiscard]] std::vector<place> places() const;
  /// The regions whose data moved, sorted by bytes, the largest number first.
  [[nodiscard]] std::vector<std::pair<std::uintptr_t, traffic>> regions() const;

  static std::atomic<profile*> the_active;

  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  call_sites sites_;
  mutable mutex mutex_;
  std::map<std::uintptr_t, traffic> regions_ HPE_GUARDED_BY(mutex_);
  std::map<std::uintptr_t, call_stack> made_at_ HPE_GUARDED_BY(mutex_);  // the allocating stacks, by address
};

/// Call the profile's function of the same name; do nothing if the process has no profile.
inline void moved(const void* region, std::uint64_t region_bytes, std::uint64_t bytes, bool to_device) {
  if (profile* const to = profile::active())
    to->moved(reinterpret_cast<std::uintptr_t>(region), region_bytes, bytes, to_device);
}

inline void used(const void* region, std::uint64_t region_bytes, std::uint64_t begin, std::uint64_t end) {
  if (profile* const to = profile::active())
    to->used(reinterpret_cast<std::uintptr_t>(region), region_bytes, begin, end);
}
inline void allocated(const void* address) {
  if (profile* const to = profile::active()) to->allocated(reinterpret_cast<std::uintptr_t>(address));
}

}  // namespace hpe::trace
