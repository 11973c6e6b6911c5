#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>

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
  /// nullptr if nobody wants one.
  [[nodiscard]] static profile* active() noexcept { return the_active.load(std::memory_order_acquire); }

  /// For the place from which it is called.
  [[gnu::noinline]] void add(way how, std::uint64_t bytes, std::chrono::nanoseconds time) noexcept;
  /// Data of device memory that CPU code uses moved, to the host or back. Not in handlers.
  void moved(std::uintptr_t region, std::uint64_t region_bytes, std::uint64_t bytes, bool to_device);

  /// The whole account, in lines.
  [[nodiscard]] std::string report() const;

 private:
  struct traffic {
    std::uint64_t region_bytes = 0;
    std::uint64_t to_device = 0;
    std::uint64_t to_host = 0;
  };

  static std::atomic<profile*> the_active;

  call_sites sites_;
  mutable mutex mutex_;
  std::map<std::uintptr_t, traffic> regions_ HPE_GUARDED_BY(mutex_);
};

/// For the profile, if there is one.
inline void moved(const void* region, std::uint64_t region_bytes, std::uint64_t bytes, bool to_device) {
  if (profile* const to = profile::active())
    to->moved(reinterpret_cast<std::uintptr_t>(region), region_bytes, bytes, to_device);
}

}  // namespace hpe::trace
