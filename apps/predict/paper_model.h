#pragma once

/// D. Schaa and D. Kaeli, Exploring the Multiple-GPU Design Space (IPDPS 2009), equations 1 to 7: the time is the sum
/// of all parts, because no parts overlap. Times are seconds, sizes bytes, rates bytes per second.

#include "apps/predict/demand.h"
#include "apps/predict/machine_profile.h"

namespace hpe::predict::paper {

/// Returns the time of one element (equation 3).
[[nodiscard]] double element_seconds(double reference_seconds, double elements);

/// Returns the time of `count` elements, or subsets of elements, on `gpus` GPUs (equations 4 and 5).
[[nodiscard]] double gpu_seconds(double seconds_of_one, double count, int gpus);

/// Returns the time that the disk needs to read or write, once, the part of a transfer that does not fit into host
/// memory (equation 6). `allocated`: bytes of all data; `transferred`: bytes of the transfer.
[[nodiscard]] double paging_seconds(double allocated, double memory, double transferred, double disk);

/// Returns the time of one transfer of a device (equation 7). Pinned memory adds the time of its allocation, and
/// pageable memory adds the time of the disk.
[[nodiscard]] double gpu_communication_seconds(bool pinned, double pinned_allocation, double disk_seconds,
                                               double bus_seconds);

/// Steps of MPI's broadcast to this number of ranks: the logarithm to base 2, rounded up.
[[nodiscard]] double broadcast_steps(double ranks);

/// Returns how often the bytes of an exchange cross the network, one time after the other.
[[nodiscard]] double steps(pattern how, double members);

/// Equations 1 and 2: the sum of all parts. Throws bad_input for distributed devices on a machine without a network.
[[nodiscard]] estimate predict(const demand& d, const machine_profile& m);

}  // namespace hpe::predict::paper
