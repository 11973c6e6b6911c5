#pragma once

/// The CUDA driver of this machine with a chosen call that fails. Counts and fails only the calls of the thread that
/// called fail_call, so that the threads that pin host memory do not disturb.

#include <cstdint>
#include <string>

#include "runtime/device/cuda/driver.h"

namespace device_test {

/// A driver whose entries count their calls and may fail.
[[nodiscard]] hpe::device::cuda::driver failing_driver();

/// From now on the n-th call (from 1) fails with this result and does nothing. Entries that release something, or that
/// describe a result, never fail.
void fail_call(std::uint64_t n, CUresult with);

/// No call fails from now on. Returns the name of the entry that failed since fail_call; empty if there were fewer
/// calls.
std::string stop_failing();

/// While true, every query of an event, by any thread, says that the work before it has not ended.
void hold_work(bool held);

/// How often an entry succeeded in this thread: "cuMemCreate".
[[nodiscard]] std::uint64_t successes_of(const std::string& entry);

}  // namespace device_test
