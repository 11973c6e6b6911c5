#pragma once

/// What the workloads have to reach on soft devices: scans, Fourier transforms and sorts against the strongest
/// libraries for CPUs, on as many threads as the devices have, in turn.

#include "bench/common/measure.h"

namespace hpe::bench {

/// All threads of all devices.
[[nodiscard]] unsigned threads_of_devices();

/// Sums of four types against oneTBB's parallel_scan: at least as fast.
[[nodiscard]] std::vector<result> scans_against_tbb(unsigned repeats);

/// Transforms of six shapes against FFTW with measured plans: within 10 %. Empty where hpe was built without FFTW.
[[nodiscard]] std::vector<result> transforms_against_fftw(unsigned repeats);

/// Sorts of 2^24 keys against two of Boost.Sort: 0.9 of their speed. Throws std::runtime_error if results differ.
[[nodiscard]] std::vector<result> sorts_against_boost(unsigned repeats);

}  // namespace hpe::bench
