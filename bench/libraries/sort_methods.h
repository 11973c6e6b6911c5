#pragma once

/// Compares hpe's two sorting methods in turn: radix sort and merge sort.

#include <cstddef>
#include <vector>

#include "bench/common/measure.h"

namespace hpe::bench {

/// Adds the speed of radix sort relative to merge sort to `results`, for key-value pairs and, on several devices, for
/// keys. Also adds the speed of the method that the sorter chooses, relative to the faster method. Throws
/// std::runtime_error if results differ.
void add_radix_against_merges(std::vector<result>& results, unsigned repeats, std::size_t count,
                              const std::vector<int>& devices);

}  // namespace hpe::bench
