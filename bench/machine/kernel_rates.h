#pragma once

/// Measures the rates of kernels for a machine profile. Each function fills in the fields of the profile that it
/// measures. The fastest of `repeats` measurements counts.

#include "apps/predict/machine_profile.h"
#include "bench/machine/ranks.h"

namespace hpe::bench {

/// Measures launches of an empty kernel. Sets m.kernel_floor to the time per launch of many launches in a row, and
/// m.launch to the additional time of a single launch with a wait for its kernel.
void measure_launches(predict::machine_profile& m, unsigned repeats);

/// Measures the speed of kernels on several devices of this machine at the same time, both for kernels limited by
/// arithmetic and for kernels limited by memory. Also measures the rates at which kernels limited by memory read their
/// own device's memory and the memory of other devices. m.devices and m.peers must be set.
void measure_kernels(predict::machine_profile& m, unsigned repeats);

/// Measures the speed of both kinds of kernels while one device on each of several machines runs kernels, and the speed
/// of copies between these devices and pageable memory. All ranks must call this function together.
void measure_kernels_on_machines(predict::machine_profile& m, unsigned repeats, ranks& all);

}  // namespace hpe::bench
