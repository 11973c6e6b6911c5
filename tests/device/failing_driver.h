#pragma once

/// The CUDA driver of this machine, of which a chosen call fails. Counts and fails the calls of the thread that asks
/// for it only, so that the threads that pin host memory do not disturb.

#include <cstdint>
#include <string>

#include "runtime/device/cuda/driver.h"

namespace device_test {

/// A driver whose entries count their calls and may fail.
[[nodiscard]] hpe::device::cuda::driver failing_driver();

/// From now on the n-th call (from 1) fails with this result and does nothing. Entries that take something away, or
/// that put a result into words, never fail.
void fail_call(std::uint64_t n, CUresult with);

/// No call fails from now on. Gives the name of the entry that failed since fail_call; empty if fewer calls came.
std::string stop_failing();

/// How often an entry succeeded in this thread: "cuMemCreate".
[[nodiscard]] std::uint64_t successes_of(const std::string& entry);

}  // namespace device_test
