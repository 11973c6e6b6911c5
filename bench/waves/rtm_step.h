#pragma once

/// How fast the wave-step kernel is, beside the copy rate of the memory that it runs in, in one run.
///
/// A point of the step costs 16 bytes: it reads now, next and speed and writes next, four bytes each; that neighbours
/// come from caches is the kernel's business. A copy counts a byte read and a byte written. The ratio is
/// (16 bytes x points / time of a step) / (2 x bytes copied / time of a copy), of medians; steps and copies take turns,
/// so that a change of the machine's speed meets both.

#include "bench/common/measure.h"

namespace hpe::bench {

/// On the cores of this machine, for every instruction set that it has.
[[nodiscard]] int measure_host_step(const arguments& options);

/// On device 0, a GPU.
[[nodiscard]] int measure_device_step(const arguments& options);

}  // namespace hpe::bench
