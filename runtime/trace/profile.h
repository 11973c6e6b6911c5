#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "runtime/trace/call_sites.h"

namespace hpe::trace {

/// How bytes went, or what a thread of the program waited for.
enum class way : std::uint8_t {
  up_staged,    ///< to a device, through hpe's pinned buffers
  up_driver,    ///< to a device, by the driver's own copy
  down_staged,  ///< from a device, likewise
  down_driver,
  any_staged,  ///< between any two addresses
  any_driver,
  touch,  ///< CPU code used device memory that was not there; no bytes of its own
};
inline constexpr unsigned way_count = 7;

/// What the data of a program did, told at its end. Any thread; add may be called in signal handlers.
class profile {
 public:
  /// For the place from which it is called.
  [[gnu::noinline]] void add(way how, std::uint64_t bytes, std::chrono::nanoseconds time) noexcept;
  /// Data of device memory that CPU code uses moved. Not in handlers.
  void moved(std::uintptr_t region, std::uint64_t region_bytes, std::uint64_t bytes, bool to_device);

  /// The whole account, in lines.
  [[nodiscard]] std::string report() const;

 private:
  struct traffic {
    std::uint64_t region_bytes = 0;
    std::uint64_t to_device = 0;
    std::uint64_t to_host = 0;
  };

  call_sites sites_;
  mutable std::mutex mutex_;
  std::map<std::uintptr_t, traffic> regions_;
};

}  // namespace hpe::trace
