#pragma once

/// The speed of the wave-step kernel compared with the copy rate of the same memory, in one run.
///
/// A point of the step costs 16 bytes: it reads now, next and speed and writes next, four bytes each; neighbours are
/// assumed to be in caches. A copied byte counts twice: as read and as written. The ratio is (16 bytes x points / time
/// of a step) / (2 x bytes copied / time of a copy), from medians; steps and copies alternate, so that a change of the
/// machine's speed affects both.

#include "bench/common/measure.h"

namespace hpe::bench {

/// Measures on the cores of this machine, for each of its instruction sets.
[[nodiscard]] int measure_host_step(const arguments& options);

/// Measures on device 0, a GPU.
[[nodiscard]] int measure_device_step(const arguments& options);

}  // namespace hpe::bench
