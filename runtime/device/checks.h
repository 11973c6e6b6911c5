#pragma once

/// Checks that GPUs, soft devices and the code that uses devices have in common.

#include <exception>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"
#include "runtime/base/log.h"
#include "runtime/device/device.h"

namespace hpe::device {

/// Throws HPE_ERROR_INVALID_ARGUMENT unless the range consists of one or more whole granules inside the UVAS. Devices
/// can back only such ranges with memory.
inline void require_granules(const uvas_layout& layout, const void* address, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  HPE_REQUIRE(bytes != 0 && bytes % granule_size == 0 && begin % granule_size == 0 && layout.contains(address) &&
                  bytes <= layout.base + layout.size() - begin,
              HPE_ERROR_INVALID_ARGUMENT,
              "{} bytes at {} cannot be backed by a device: address and size must be multiples of {} bytes inside the "
              "shared address space",
              bytes, address, granule_size);
}

/// Throws HPE_ERROR_INVALID_DEVICE if no device has this number; the message states the numbers of the devices.
inline void require_device(const device_set& devices, int device) {
  HPE_REQUIRE(device >= 0 && static_cast<unsigned>(device) < devices.size(), HPE_ERROR_INVALID_DEVICE,
              "there is no device {}; devices are numbered from 0 to {}", device, devices.size() - 1);
}

/// Calls `function` and logs the exception that `function` throws. Destructors and functions that release memory use
/// this, because they must not throw. `what`: the operation, as the first words of the log message.
template <class Function>
void log_failure_of(const char* what, const Function& function) noexcept {
  try {
    function();
  } catch (const std::exception& e) {
    log(log_level::error, "{}: {}", what, e.what());
  }
}

}  // namespace hpe::device
