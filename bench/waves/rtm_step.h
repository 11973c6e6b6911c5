#pragma once

/// The speed of the wave-step kernel, compared with the rate of copies in the same memory, in one run.
///
/// A step counts 16 bytes for each point: it reads the fields now, next and speed and writes next, four bytes each; the
/// neighbours of a point are assumed to be in caches. A copied byte counts twice, as read and as written. The ratio is
/// (16 bytes x points / time of a step) / (2 x bytes copied / time of a copy), from medians; steps and copies
/// alternate, so that a change of the machine's speed affects both.

#include "bench/common/measure.h"

namespace hpe::bench {

/// Measures the kernel on the cores of this machine, once for each instruction set that they support. Returns the exit
/// status for main().
[[nodiscard]] int measure_host_step(const arguments& options);

/// Measures the kernel on device 0, which must be a GPU. Returns the exit status for main().
[[nodiscard]] int measure_device_step(const arguments& options);

}  // namespace hpe::bench
