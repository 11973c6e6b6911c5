#pragma once

/// The bars of the workloads on soft devices: scans, Fourier transforms and sorts against the fastest libraries for
/// CPUs, in turn and with the same number of threads.

#include "bench/common/measure.h"

namespace hpe::bench {

/// The number of threads of all devices together.
[[nodiscard]] unsigned threads_of_devices();

/// Sums of four types against oneTBB's parallel_scan: at least as fast.
[[nodiscard]] std::vector<result> scans_against_tbb(unsigned repeats);

/// Transforms of six shapes against FFTW with measured plans: within 10 %. Empty where hpe was built without FFTW.
[[nodiscard]] std::vector<result> transforms_against_fftw(unsigned repeats);

/// Sorts of 2^24 keys against two of Boost.Sort: 0.9 of their speed. Throws std::runtime_error if results differ.
[[nodiscard]] std::vector<result> sorts_against_boost(unsigned repeats);

}  // namespace hpe::bench
