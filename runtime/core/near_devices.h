#pragma once

#include "runtime/device/device.h"
#include "runtime/transfer/device_groups.h"

namespace hpe::core {

/// Puts what serves a device on the device's NUMA node. Where no device's node is known, which is so on machines that
/// have only one, all devices are one group and nothing is bound.
[[nodiscard]] transfer::device_groups near_devices(device::device_set& devices);

}  // namespace hpe::core
