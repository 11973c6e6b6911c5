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

/// How bytes went, or what a thread of the program waited for.
enum class way : std::uint8_t {
  up_staged,    ///< to a device, through hpe's pinned buffers
  up_driver,    ///< to a device, by the driver's own copy
  down_staged,  ///< from a device, likewise
  down_driver,
  across,      ///< between two allocations of hpe, queued
  any_staged,  ///< between any two addresses
  any_driver,
  touch,  ///< CPU code used device memory that was not there; no bytes of its own
};
inline constexpr unsigned way_count = 8;
[[nodiscard]] const char* name_of(way how) noexcept;

/// What the data of a program did, told at its end (HPE_PROFILE). One per process, like the log. Any thread; add may be
/// called in signal handlers.
class HPE_API profile {
 public:
  /// Makes the profile of this process if wanted is "1" and there is none yet; it lives to the end, and is told on
  /// standard error when the process exits. Throws HPE_ERROR_INITIALIZATION if wanted is neither "0" nor "1".
  static void start(const std::string& wanted);
  /// The same without telling, unless there is a profile already.
  static void start_untold();
  /// nullptr if nobody wants one.
  [[nodiscard]] static profile* active() noexcept { return the_active.load(std::memory_order_acquire); }

  /// For the place from which it is called. address: of a touch.
  [[gnu::noinline]] void add(way how, std::uint64_t bytes, std::chrono::nanoseconds time,
                             const void* address = nullptr) noexcept;
  /// Data of device memory that CPU code uses moved, to the host or back. Not in handlers.
  void moved(std::uintptr_t region, std::uint64_t region_bytes, std::uint64_t bytes, bool to_device);

  /// A launch, or CPU code, uses [begin, end) of the bytes of device memory. Not in handlers.
  void used(std::uintptr_t region, std::uint64_t region_bytes, std::uint64_t begin, std::uint64_t end);
  /// The calling thread has made an allocation. Not in handlers.
  void allocated(std::uintptr_t address);

  /// The whole account, in lines.
  [[nodiscard]] std::string report() const;
  /// The same as an object of JSON, with all places and allocations.
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
  /// By place in the source, what took longest first.
  [[nodiscard]] std::vector<place> places() const;
  /// What moved most first.
  [[nodiscard]] std::vector<std::pair<std::uintptr_t, traffic>> regions() const;

  static std::atomic<profile*> the_active;

  call_sites sites_;
  mutable mutex mutex_;
  std::map<std::uintptr_t, traffic> regions_ HPE_GUARDED_BY(mutex_);
  std::map<std::uintptr_t, call_stack> made_at_ HPE_GUARDED_BY(mutex_);  // by address
};

/// For the profile, if there is one.
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
