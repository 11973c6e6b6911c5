#pragma once

/// Code for merges of two and of four sequences: the division among blocks, and merges within shared memory.

#include <stdint.h>

#include "kernels/sort.h"

namespace hpe::kernels::gpu {

[[nodiscard]] constexpr uint32_t power_of_two_within(uint32_t n) {
  uint32_t power = 1;
  while (power <= n / 2) power *= 2;
  return power;
}

struct output_range {
  uint64_t begin, end;
};

/// Returns the range of the outputs [from, to) that this block computes; the range may be empty. The lengths of all
/// ranges but the last one are multiples of `unit`.
[[nodiscard]] __device__ __forceinline__ output_range part_of_block(uint64_t from, uint64_t to, uint32_t unit) {
  const uint64_t count = to - from;
  const uint64_t part = ((count + gridDim.x - 1) / gridDim.x + unit - 1) / unit * unit, before = part * blockIdx.x;
  if (before >= count) return {to, to};
  return {from + before, count - before < part ? to : from + before + part};
}

/// A sequence of `count` elements in shared memory, from place `begin` on, in a ring buffer of mask + 1 places that
/// begins at index `base`.
struct near_sequence {
  uint32_t base, begin, mask, count;
  /// Returns the index, in shared memory, of place `i` of the ring; `i` wraps around after mask + 1 places.
  [[nodiscard]] __device__ __forceinline__ uint32_t place(uint32_t i) const { return base + (i & mask); }
};

/// Returns how many of the first `place` elements of the merged sequence come from the left sequence.
template <class T, class Less>
[[nodiscard]] __device__ __forceinline__ uint32_t near_pivot(const T* near, const near_sequence& left,
                                                             const near_sequence& right, uint32_t place, Less less) {
  uint32_t low = place > right.count ? place - right.count : 0, high = place < left.count ? place : left.count;
  while (low < high) {
    const uint32_t middle = (low + high) / 2;
    if (less(near[right.place(right.begin + place - 1 - middle)], near[left.place(left.begin + middle)]))
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

/// Merges elements [place, place + each) of the merged sequence into the registers `merged` of one thread, as far as
/// they are among the first `count` elements. Returns how many elements up to the thread's last element come from the
/// left sequence. endless: both sequences have more elements than the thread merges, so that their ends are not tested.
template <bool endless, uint32_t each, class T, class Less>
__device__ __forceinline__ uint32_t merge_near(const T* near, const near_sequence& left, const near_sequence& right,
                                               uint32_t place, uint32_t count, T (&merged)[each], Less less) {
  const uint32_t low = near_pivot(near, left, right, place, less);
  // These loads may read elements beyond the ends; such elements are not used.
  uint32_t l = left.begin + low, r = right.begin + place - low;
  const uint32_t left_end = left.begin + left.count, right_end = right.begin + right.count;
  T of_left = near[left.place(l)], of_right = near[right.place(r)];
#pragma unroll
  for (uint32_t i = 0; i < each; ++i) {
    if (place + i >= count) break;
    const bool right_first =
        endless ? less(of_right, of_left) : l == left_end || (r != right_end && less(of_right, of_left));
    merged[i] = right_first ? of_right : of_left;
    l += !right_first;
    r += right_first;
    const T next = near[right_first ? right.place(r) : left.place(l)];
    if (right_first)
      of_right = next;
    else
      of_left = next;
  }
  return l - left.begin;
}

/// Writes the first `count` elements of the merged sequence to `merged`; each thread writes `each` elements. from_left:
/// receives the number of these elements that come from the left sequence. whole: every thread writes `each` elements,
/// and neither sequence ends within the step.
template <bool whole, uint32_t each, class T, class Less>
__device__ __forceinline__ void merge_beginning(const T* near, const near_sequence& left, const near_sequence& right,
                                                uint32_t count, T* merged, uint32_t& from_left, Less less) {
  const uint32_t place = threadIdx.x * each;
  if (!whole && place >= count) return;
  T mine[each];
  const uint32_t taken = merge_near<whole>(near, left, right, place, whole ? ~0U : count, mine, less);
  if (place + each >= count) from_left = taken;
#pragma unroll
  for (uint32_t i = 0; i < each; ++i)
    if (whole || place + i < count) merged[place + i] = mine[i];
}

/// Writes the outputs of a full or a shorter step from shared memory to `output`.
template <class Shape, class T>
__device__ __forceinline__ void write_step(const T* merged, T* output, uint32_t count) {
  if (Shape::step == Shape::each * merge_threads && count == Shape::step) {
#pragma unroll
    for (uint32_t i = 0; i < Shape::each; ++i)
      output[i * merge_threads + threadIdx.x] = merged[i * merge_threads + threadIdx.x];
  } else {
    for (uint32_t place = threadIdx.x; place < count; place += merge_threads) output[place] = merged[place];
  }
}

}  // namespace hpe::kernels::gpu
