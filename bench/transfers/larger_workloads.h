#pragma once

/// Applications whose data are twice as large as the device's memory.

#include <cstddef>
#include <vector>

#include "bench/common/measure.h"

namespace hpe::bench {

/// What the link of a device gives, in bytes per second: uploads alone, and each way while both are busy.
struct link_rates {
  double up = 0;
  double both = 0;
};

/// Steps of a wave field, slab by slab, and scans of a batch, problem by problem, in place, each with arrays of twice
/// the memory together. The bar is the time that the link takes for the bytes that must move, or the kernels for data
/// in device memory, whichever is longer. part: bytes of a launch.
void measure_workloads(std::size_t memory, std::size_t part, const link_rates& link, unsigned repeats,
                       std::vector<result>& lines);

}  // namespace hpe::bench
