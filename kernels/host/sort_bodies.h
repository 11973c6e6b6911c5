#pragma once

/// The bodies of sorts for soft devices, as templates over the element type and the order. HPE_HOST_SORT(name, T, Less)
/// defines the kernels sort_local_name, sort_merge_name and sort_merge_four_name. A program can use the macro in its
/// own module.

#include <algorithm>
#include <boost/sort/pdqsort/pdqsort.hpp>
#include <boost/sort/spinsort/spinsort.hpp>
#include <type_traits>

#include "hpe/kernel.h"
#include "kernels/sort.h"

namespace hpe::kernels {

/// True for integers in ascending order: equal integers cannot be distinguished, so that every sort of them is stable.
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

struct places {
  uint64_t from, to;
};

/// Returns the range of the outputs [from, to) that the given tiles compute.
inline places part_of(uint64_t from, uint64_t to, const hpeTiles& tiles) {
  const auto place_of = [&](uint64_t tile) { return from + uint64_t(__uint128_t(to - from) * tile / tiles.grid[0]); };
  return {place_of(tiles.begin), place_of(tiles.end)};
}

template <class T, class Less>
void merge_here(const sort_merge<T>& p, const hpeTiles& tiles) {
  constexpr Less less{};
  const auto [from, to] = part_of(p.from, p.to, tiles);
  const auto split = [&](uint64_t place) { return pivot(p.left, p.left_count, p.right, p.right_count, place, less); };
  const T* left = p.left + split(from);
  const T* const left_end = p.left + split(to);
  const T* right = p.right + (from - uint64_t(left - p.left));
  const T* const right_end = p.right + (to - uint64_t(left_end - p.left));
  T* output = p.output + from;
  // This loop has no branch that depends on the elements, because such a branch would be mispredicted half of the time.
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
void merge_four_here(const sort_merge_four<T>& p, const hpeTiles& tiles) {
  constexpr Less less{};
  const auto [from, to] = part_of(p.from, p.to, tiles);
  uint64_t begins[sort_runs], ends[sort_runs];
  select_runs(p, from, begins, less);
  select_runs(p, to, ends, less);
  struct run {
    const T *at, *end;
  } runs[sort_runs];
  for (uint32_t r = 0; r < sort_runs; ++r) runs[r] = {p.runs[r] + begins[r], p.runs[r] + ends[r]};
  const auto next_of = [&](run* left, run* right) {
    return left->at == left->end || (right->at != right->end && less(*right->at, *left->at)) ? right : left;
  };
  run* firsts[] = {next_of(runs, runs + 1), next_of(runs + 2, runs + 3)};
  for (T* output = p.output + from; output != p.output + to; ++output) {
    const unsigned half = next_of(firsts[0], firsts[1]) == firsts[0] ? 0 : 1;
    *output = *firsts[half]->at++;
    firsts[half] = next_of(runs + 2 * half, runs + 2 * half + 1);
  }
}

}  // namespace hpe::kernels

#define HPE_HOST_SORT_KERNEL(kernel_name, Parameters, call) \
  HPE_HOST_KERNEL(kernel_name, Parameters) { call(*parameters, *tiles); }
#define HPE_HOST_SORT(name, T, Less)                                                                        \
  HPE_HOST_SORT_KERNEL(sort_local_##name, hpe::kernels::sort_local<T>, (hpe::kernels::sort_here<T, Less>))  \
  HPE_HOST_SORT_KERNEL(sort_merge_##name, hpe::kernels::sort_merge<T>, (hpe::kernels::merge_here<T, Less>)) \
  HPE_HOST_SORT_KERNEL(sort_merge_four_##name, hpe::kernels::sort_merge_four<T>,                            \
                       (hpe::kernels::merge_four_here<T, Less>))
