#pragma once

#include "runtime/core/environment.h"

namespace hpe::core {

/// The device that the calling thread chose with hpeSetDevice.
[[nodiscard]] int current_device() noexcept;

/// Turns HPE_CURRENT_DEVICE into the thread's device and checks that it exists.
[[nodiscard]] unsigned device_or_current(const environment& env, int device);

}  // namespace hpe::core
