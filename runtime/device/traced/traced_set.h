#pragma once

/// Devices whose work is recorded (HPE_TRACE): each wraps one of another set, passes everything on, and tells the
/// recorder when kernels and copies began and ended.
///
/// A thread watches the timepoints, so ends are late by what it takes to wake it (some ten microseconds). Work is taken
/// to begin when it was queued, what it waits for is reached, and its stream has finished what came before.

#include <memory>

#include "runtime/device/device.h"
#include "runtime/trace/recorder.h"

namespace hpe::device::traced {

/// The devices themselves if nothing is recorded.
[[nodiscard]] std::unique_ptr<device_set> wrap(std::unique_ptr<device_set> devices, const uvas_layout& layout,
                                               trace::recorder* to);

}  // namespace hpe::device::traced
