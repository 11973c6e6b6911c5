#pragma once

/// Rates of kernels for a profile. All functions fill the part of the profile that they measure; each figure is the
/// fastest of the repeats.

#include "apps/predict/machine_profile.h"
#include "bench/machine/ranks.h"

namespace hpe::bench {

/// The time of a launch of an empty kernel with the wait for it, and the time of each of many launches in a row.
void measure_launches(predict::machine_profile& m, unsigned repeats);

/// The speed of kernels on several devices of this machine concurrently: of kernels that arithmetic bounds, and of
/// kernels that memory bounds, with the rates at which these read their own and other devices' memory. m.devices and
/// m.peers must be set.
void measure_kernels(predict::machine_profile& m, unsigned repeats);

/// The same while one device of each of several machines runs kernels, and the speed of copies between it and pageable
/// memory. Collective.
void measure_kernels_on_machines(predict::machine_profile& m, unsigned repeats, ranks& all);

}  // namespace hpe::bench
