#pragma once

/// The two methods of hpe's sorts, by turns, on all devices.

#include <cstddef>
#include <vector>

#include "bench/common/measure.h"

namespace hpe::bench {

/// Adds the speed of sorts by radix, that of merges being 1, for five types of elements. has_bar: radix must not be
/// slower. Throws std::runtime_error if results differ.
void add_radix_against_merges(std::vector<result>& results, unsigned repeats, std::size_t count, bool has_bar);

}  // namespace hpe::bench
