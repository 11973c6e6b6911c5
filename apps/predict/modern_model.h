#pragma once

/// Predicts the time on machines whose parts work concurrently. Overlapping work takes as long as its busiest resource;
/// the times of other work are added. Links have two directions and a latency, devices copy to each other, kernels run
/// in waves of blocks, and a collective uses the algorithm that is fastest for its size. Memory has tiers: bytes that
/// do not fit into a device's memory cross its link in each iteration; bytes that do not fit into host memory cross the
/// disk.

#include "apps/predict/demand.h"
#include "apps/predict/machine_profile.h"

namespace hpe::predict::modern {

/// The connection between two members of an exchange, in each direction.
struct path {
  double rate;
  double latency;
};

/// Returns the seconds of one exchange. Broadcast and all_reduce take the faster of two algorithms: a tree, which sends
/// whole messages in few steps, and scatter with all-gather, which sends parts (R. Thakur et al., Optimization of
/// Collective Communication Operations in MPICH, 2005).
[[nodiscard]] double exchange_seconds(pattern how, double bytes, double members, const path& way);

/// Returns the seconds of an iteration's kernels on the device with the most units.
[[nodiscard]] double kernel_seconds(const demand& d, const machine_profile& m);

/// Throws bad_input for distributed devices on a machine without a network.
[[nodiscard]] estimate predict(const demand& d, const machine_profile& m);

}  // namespace hpe::predict::modern
