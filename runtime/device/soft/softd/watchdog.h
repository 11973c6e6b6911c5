#pragma once

/// The device's thread that stops kernels which cannot end by themselves.

#include "runtime/device/soft/shared/fabric.h"
#include "runtime/device/soft/softd/pool.h"

namespace hpe::device::soft {

/// When a device is lost, stops the launches of its teams here, whose tiles may wait for its tiles. Ends the process,
/// with the reason in its status, when a launch cannot be stopped within a second, or when a kernel that crashed or was
/// stopped has left a lock of the C library locked. Runs until the process ends.
void start_watchdog(unsigned device, fabric& shared, tile_pool& pool);

}  // namespace hpe::device::soft
