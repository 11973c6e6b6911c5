#pragma once

/// Benchmarks with targets on soft devices: scans, Fourier transforms and sorts are compared with the fastest libraries
/// for CPUs, in turn and with the same number of threads.

#include "bench/common/measure.h"

namespace hpe::bench {

/// Returns the number of threads of all soft devices together.
[[nodiscard]] unsigned threads_of_devices();

/// Prefix sums of elements of four types. Target: at least as fast as oneTBB's parallel_scan.
[[nodiscard]] std::vector<result> scans_against_tbb(unsigned repeats);

/// Fourier transforms of six shapes. Target: at most 10 % slower than FFTW with measured plans. Returns an empty list
/// if hpe was built without FFTW.
[[nodiscard]] std::vector<result> transforms_against_fftw(unsigned repeats);

/// Sorts of 2^24 32-bit keys. Target: at least 0.9 of the speed of two sorts of Boost.Sort. Throws std::runtime_error
/// if the results differ.
[[nodiscard]] std::vector<result> sorts_against_boost(unsigned repeats);

}  // namespace hpe::bench
