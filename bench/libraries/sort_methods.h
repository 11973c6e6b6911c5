#pragma once

/// The two methods of hpe's sorts, by turns.

#include <cstddef>
#include <vector>

#include "bench/common/measure.h"

namespace hpe::bench {

/// Adds the speed of radix sort relative to merge sort, for pairs and, on several devices, for keys; and whether the
/// sorter picks the faster method. Throws std::runtime_error if results differ.
void add_radix_against_merges(std::vector<result>& results, unsigned repeats, std::size_t count,
                              const std::vector<int>& devices);

}  // namespace hpe::bench
