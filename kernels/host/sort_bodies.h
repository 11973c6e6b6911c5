#pragma once

/// The host bodies of sorts, for soft devices; templates over the element type and the order. HPE_HOST_SORT(name, T,
/// Less) defines the kernels sort_local_name, sort_bounds_name and sort_merge_name, also in a module of a program's
/// own.

#include <algorithm>
#include <boost/sort/pdqsort/pdqsort.hpp>
#include <boost/sort/spinsort/spinsort.hpp>
#include <type_traits>

#include "hpe/kernel.h"
#include "kernels/sort.h"

namespace hpe::kernels {

/// Integers in their own order: equal ones cannot be told apart, so that any sort of them is stable.
template <class T, class Less>
inline constexpr bool all_alike = std::is_integral_v<T>&& std::is_same_v<Less, by_key>;

template <class T, class Less>
void sort_here(const sort_local<T>& p, const hpeTiles& tiles) {
  if (tiles.begin != 0) return;
  if (p.output != p.input) std::copy(p.input, p.input + p.count, p.output);
  if constexpr (all_alike<T, Less>)
    boost::sort::pdqsort_branchless(p.output, p.output + p.count, Less{});
  else
    boost::sort::spinsort(p.output, p.output + p.count, Less{});
}

template <class T, class Less>
void merge_here(const sort_merge<T>& p, const hpeTiles& tiles) {
  constexpr Less less{};
  const uint64_t count = p.to - p.from, grid = tiles.grid[0];
  // Where bounds are known, tiles end at them.
  const uint64_t unit = p.bounds == nullptr ? 1 : merge_tile, units = (count + unit - 1) / unit;
  const auto place_of = [&](uint64_t tile) {
    const uint64_t place = uint64_t(__uint128_t(units) * tile / grid) * unit;
    return p.from + (place < count ? place : count);
  };
  const uint64_t from = place_of(tiles.begin), to = place_of(tiles.end);
  const auto split = [&](uint64_t place) {
    if (p.bounds != nullptr) return p.bounds[(place - p.from + merge_tile - 1) / merge_tile];
    return pivot(p.left, p.left_count, p.right, p.right_count, place, less);
  };
  const T* left = p.left + split(from);
  const T* const left_end = p.left + split(to);
  const T* right = p.right + (from - uint64_t(left - p.left));
  const T* const right_end = p.right + (to - uint64_t(left_end - p.left));
  T* output = p.output + from;
  // Without a branch that depends on the data, which would be guessed wrong half the time.
  while (left != left_end && right != right_end) {
    const bool from_right = less(*right, *left);
    *output++ = from_right ? *right : *left;
    right += from_right;
    left += !from_right;
  }
  output = std::copy(left, left_end, output);
  std::copy(right, right_end, output);
}

template <class T, class Less>
void find_bounds(const sort_bounds<T>& p, const hpeTiles& tiles) {
  const uint64_t count = p.count(), grid = tiles.grid[0];
  for (uint64_t i = count * tiles.begin / grid; i < count * tiles.end / grid; ++i)
    p.bounds[i] = pivot(p.left, p.left_count, p.right, p.right_count, p.place(i), Less{});
}

}  // namespace hpe::kernels

#define HPE_HOST_SORT_LOCAL(kernel_name, Parameters, call) \
  HPE_HOST_KERNEL(kernel_name, Parameters) { call(*parameters, *tiles); }
#define HPE_HOST_SORT(name, T, Less)                                                                          \
  HPE_HOST_SORT_LOCAL(sort_local_##name, hpe::kernels::sort_local<T>, (hpe::kernels::sort_here<T, Less>))     \
  HPE_HOST_SORT_LOCAL(sort_bounds_##name, hpe::kernels::sort_bounds<T>, (hpe::kernels::find_bounds<T, Less>)) \
  HPE_HOST_SORT_LOCAL(sort_merge_##name, hpe::kernels::sort_merge<T>, (hpe::kernels::merge_here<T, Less>))
