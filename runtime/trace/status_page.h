#pragma once

/// What `hpe top` shows of a process: a page in a memory file, which `hpe top` opens through /proc/PROCESS/fd. The
/// runtime counts directly in it, so publishing costs nothing. The kernel lets only the same user open it, and it goes
/// with the process, however that ends.

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "hpe/hpe.h"
#include "runtime/base/counters.h"

namespace hpe::trace {

/// The layout is for readers of the same version of hpe: `version` says which.
struct status_page {
  static constexpr std::uint64_t current_version = 1;
  struct device {
    std::array<char, 64> name{};
    std::uint64_t memory = 0;  ///< bytes of the device; 0 where that is not known
  };

  std::atomic<std::uint64_t> version{0};  ///< current_version once `process` and `started` are there
  std::int64_t process = 0;
  std::uint64_t started = 0;  ///< when the process started, in the ticks of /proc/PROCESS/stat
  std::atomic<std::uint32_t> devices{0};
  std::array<device, counters::most_devices> device_table{};  ///< the first `devices` are there
  counters count;

  /// The page of this process, made by the first call. If no file can be made for it, its memory is private: the
  /// process counts as ever, and `hpe top` does not show it.
  [[nodiscard]] HPE_API static status_page& own() noexcept;

  /// Tells the devices. Once, by one thread.
  void tell_devices(const device* first, std::uint32_t how_many) noexcept;
};

/// The name of the memory file.
inline constexpr const char* status_file = "hpe-status";

/// When a process started, in clock ticks since the machine did; 0 if there is no such process. Tells a process from a
/// later one of the same number.
[[nodiscard]] HPE_API std::uint64_t start_of_process(pid_t process) noexcept;

}  // namespace hpe::trace
