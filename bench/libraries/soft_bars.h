#pragma once

/// The targets of the workloads on soft devices: scans, Fourier transforms and sorts are compared with the fastest
/// libraries for CPUs, in turn and with the same number of threads.

#include "bench/common/measure.h"

namespace hpe::bench {

/// The number of threads of all devices together.
[[nodiscard]] unsigned threads_of_devices();

/// Prefix sums of four types. Target: at least as fast as oneTBB's parallel_scan.
[[nodiscard]] std::vector<result> scans_against_tbb(unsigned repeats);

/// Transforms of six shapes. Target: at most 10 % slower than FFTW with measured plans. Empty if hpe was built without
/// FFTW.
[[nodiscard]] std::vector<result> transforms_against_fftw(unsigned repeats);

/// Sorts of 2^24 keys. Target: 0.9 of the speed of two sorts of Boost.Sort. Throws std::runtime_error if the results
/// differ.
[[nodiscard]] std::vector<result> sorts_against_boost(unsigned repeats);

}  // namespace hpe::bench
