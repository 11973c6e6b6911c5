#pragma once

/// Compares the two methods of hpe's sorts in turn.

#include <cstddef>
#include <vector>

#include "bench/common/measure.h"

namespace hpe::bench {

/// Adds the speed of radix sort relative to merge sort, for key-value pairs and, on several devices, for keys. Also
/// adds whether the sorter chooses the faster method. Throws std::runtime_error if results differ.
void add_radix_against_merges(std::vector<result>& results, unsigned repeats, std::size_t count,
                              const std::vector<int>& devices);

}  // namespace hpe::bench
