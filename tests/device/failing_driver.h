#pragma once

/// The CUDA driver that hpe finds, in which one chosen call fails. Only the calls of the thread that called fail_call
/// are counted and can fail, so the threads that pin host memory do not interfere.

#include <cstdint>
#include <string>

#include "runtime/device/cuda/driver.h"

namespace device_test {

/// Returns a driver whose entries count their calls and may fail.
[[nodiscard]] hpe::device::cuda::driver failing_driver();

/// From now on, the n-th call of this thread (counted from 1) fails with this result and does nothing. Functions that
/// release a resource, describe a result, or get or pop the current context never fail and are not counted.
void fail_call(std::uint64_t n, CUresult with);

/// No call fails from now on. Returns the name of the driver function whose call failed since fail_call; empty if there
/// were fewer than n calls.
std::string stop_failing();

/// While `held` is true, cuEventQuery returns CUDA_ERROR_NOT_READY for every event, in any thread.
void hold_work(bool held);

/// Returns the number of calls of a driver function (for example "cuMemCreate") that have succeeded in this thread.
[[nodiscard]] std::uint64_t successes_of(const std::string& entry);

}  // namespace device_test
