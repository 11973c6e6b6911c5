#pragma once

#include "runtime/device/device.h"
#include "runtime/transfer/placement.h"

namespace hpe::core {

/// Puts what serves a device on the device's NUMA node. Where no device's node is known, which is so on machines that
/// have only one, all devices are one group and nothing is bound.
[[nodiscard]] transfer::placement near_devices(device::device_set& devices);

}  // namespace hpe::core
