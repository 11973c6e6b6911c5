#pragma once

/// Rates of kernels for a profile. Each function fills the part of the profile that it measures. Each figure is the
/// fastest of the repeats.

#include "apps/predict/machine_profile.h"
#include "bench/machine/ranks.h"

namespace hpe::bench {

/// Measures the time of a launch of an empty kernel with the wait for it, and the time of each of many launches in a
/// row.
void measure_launches(predict::machine_profile& m, unsigned repeats);

/// Measures the speed of kernels on several devices of this machine at the same time: of kernels limited by arithmetic,
/// and of kernels limited by memory. Also measures the rates at which the latter read their own device's memory and
/// that of other devices. m.devices and m.peers must be set.
void measure_kernels(predict::machine_profile& m, unsigned repeats);

/// Measures the same speeds while one device of each of several machines runs kernels, and the speed of copies between
/// these devices and pageable memory. Collective.
void measure_kernels_on_machines(predict::machine_profile& m, unsigned repeats, ranks& all);

}  // namespace hpe::bench
