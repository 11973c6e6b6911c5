#pragma once

/// Devices whose operations fail when the injector says so. Each wraps one of another set and passes everything else
/// on. The runtime gets it in the place of what device::open_devices gives (the linker's --wrap).

#include <cstdint>
#include <vector>

namespace sweep {

/// Bytes of device memory that a queued command writes.
struct device_write {
  unsigned device = 0;  ///< whose stream has the command
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
};

/// What was accepted since forget_accepted(). A launch writes what its accesses name, which devices do not see.
struct accepted_work {
  std::vector<device_write> writes;
  std::vector<unsigned> launches;  ///< by device
};
void forget_accepted();
[[nodiscard]] accepted_work accepted();

/// What the command that fails late would have done: writing bytes (nowhere: a launch).
[[nodiscard]] device_write late_command();
/// After injected().disarm(): from now on no thread of the runtime makes a command the one that fails late.
void await_late_command();

/// The device that was killed, -1: none.
[[nodiscard]] int killed_device();

}  // namespace sweep
