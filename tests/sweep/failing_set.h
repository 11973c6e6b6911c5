#pragma once

/// Devices whose operations fail when the injector chooses them. Each device wraps a device of another set and forwards
/// all other operations. By the linker's --wrap, the runtime gets this set instead of the set that device::open_devices
/// returns.

#include <cstdint>
#include <vector>

namespace sweep {

/// The range of device memory that a queued command writes.
struct device_write {
  unsigned device = 0;  ///< the device in whose stream the command is
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
};

/// The work that devices have accepted since forget_accepted(). Of launches, only the devices are recorded, because
/// devices do not see the accesses of a launch.
struct accepted_work {
  std::vector<device_write> writes;
  std::vector<unsigned> launches;  ///< the device of each launch
};
void forget_accepted();
[[nodiscard]] accepted_work accepted();

/// Returns the range that the command that failed late would have written (empty for a launch).
[[nodiscard]] device_write late_command();
/// After injected().disarm(): waits until no thread of the runtime can choose a command to fail late any more.
void await_late_command();

/// Returns the device that was killed; -1 if none was.
[[nodiscard]] int killed_device();

}  // namespace sweep
