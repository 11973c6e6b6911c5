#pragma once

/// The numbers of a process that `hpe top` shows. They are on a page in a memory file, which `hpe top` opens through
/// /proc/PROCESS/fd. The page contains the runtime's counters themselves, so publishing costs nothing. The operating
/// system lets only the same user open the file, and removes the file when the process ends, even if it is killed.

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "hpe/hpe.h"
#include "runtime/base/counters.h"

namespace hpe::trace {

/// Readers must use the same layout, which `version` identifies.
struct status_page {
  static constexpr std::uint64_t current_version = 3;
  struct device {
    std::array<char, 64> name{};
    std::uint64_t memory = 0;  ///< size of the device's memory in bytes; 0: not known
  };

  std::atomic<std::uint64_t> version{0};  ///< current_version once `process` and `started` are set
  std::int64_t process = 0;
  std::uint64_t started = 0;  ///< time when the process started, in the ticks of /proc/PROCESS/stat
  std::atomic<std::uint32_t> devices{0};
  std::array<device, counters::most_devices> device_table{};  ///< only the first `devices` entries are set
  counters count;

  /// Returns the page of this process. The first call creates the page. If no file can be created for the page, the
  /// page is in private memory: the process counts as usual, but `hpe top` does not show the process.
  [[nodiscard]] HPE_API static status_page& own() noexcept;

  /// Publishes the devices. Call this once.
  void tell_devices(const device* first, std::uint32_t how_many) noexcept;
};

/// The name of the memory file.
inline constexpr const char* status_file = "hpe-status";

/// Returns the time when a process started, in clock ticks since the machine started; 0 if the process does not exist.
/// The time distinguishes a process from a later process with the same ID.
[[nodiscard]] HPE_API std::uint64_t start_of_process(pid_t process) noexcept;

}  // namespace hpe::trace
