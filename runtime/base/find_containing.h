#pragma once

#include <functional>
#include <iterator>

namespace hpe {

/// Searches a map of disjoint ranges, whose keys are the ranges' first addresses: returns the entry of the range that
/// contains an address; end() if no range does. `size` returns the number of bytes of an entry's value, for example
/// &allocation::bytes.
template <class Map, class Size>
[[nodiscard]] auto find_containing(Map& ranges, typename Map::key_type address, Size size) {
  const auto after = ranges.upper_bound(address);
  if (after == ranges.begin()) return ranges.end();
  const auto found = std::prev(after);
  return address - found->first < std::invoke(size, found->second) ? found : ranges.end();
}

}  // namespace hpe
