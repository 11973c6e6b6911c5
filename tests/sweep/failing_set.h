#pragma once

/// Devices whose operations fail when the injector says so. Each wraps a device of another set and forwards all other
/// operations. The runtime gets this set instead of that of device::open_devices (by the linker's --wrap).

#include <cstdint>
#include <vector>

namespace sweep {

/// Bytes of device memory that a queued command writes.
struct device_write {
  unsigned device = 0;  ///< the device whose stream has the command
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
};

/// The work that was accepted since forget_accepted(). A launch writes the memory of its accesses, which devices do not
/// see.
struct accepted_work {
  std::vector<device_write> writes;
  std::vector<unsigned> launches;  ///< by device
};
void forget_accepted();
[[nodiscard]] accepted_work accepted();

/// The bytes that the command that fails late would have written (none for a launch).
[[nodiscard]] device_write late_command();
/// After injected().disarm(): waits until no thread of the runtime can choose a command to fail late any more.
void await_late_command();

/// The device that was killed, -1: none.
[[nodiscard]] int killed_device();

}  // namespace sweep
