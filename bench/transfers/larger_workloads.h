#pragma once

/// Applications whose data is twice as large as device memory.

#include <cstddef>
#include <vector>

#include "bench/common/measure.h"

namespace hpe::bench {

/// The rates of a device's link in bytes per second: `up` for uploads alone, `both` for each direction while both
/// directions are busy.
struct link_rates {
  double up = 0;
  double both = 0;
};

/// Measures two workloads whose arrays together are twice as large as `memory` bytes: time steps of a wave field, with
/// a launch for each slab, and in-place scans of a batch, with a launch for each problem. The reference is the longer
/// of two times: the time that the link needs for the bytes that must move, and the time that the kernels need on data
/// in device memory. part: the bytes that one launch accesses.
void measure_workloads(std::size_t memory, std::size_t part, const link_rates& link, unsigned repeats,
                       std::vector<result>& lines);

}  // namespace hpe::bench
