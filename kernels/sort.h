#pragma once

/// Merging of sorted sequences, and what can be sorted: the parameters of the kernels. Both sides include this header;
/// it needs nothing but <stdint.h>.

#include <stdint.h>

#if defined(__CUDACC__)
#define HPE_SORT_BOTH __host__ __device__ __forceinline__
#else
#define HPE_SORT_BOTH inline
#endif

namespace hpe::kernels {

/// A key with something that goes where it goes.
template <class Key, class Value>
struct sort_pair {
  Key key;
  Value value;
};

/// The order of keys, and of pairs by their keys: ascending. Keys are no NaN. A program's own order has the same form:
/// a type without state, a strict weak order.
struct by_key {
  template <class T>
  HPE_SORT_BOTH bool operator()(const T& a, const T& b) const {
    return a < b;
  }
  template <class K, class V>
  HPE_SORT_BOTH bool operator()(const sort_pair<K, V>& a, const sort_pair<K, V>& b) const {
    return a.key < b.key;
  }
};

/// output = input, sorted; equal elements keep their order. Output is the input or does not overlap it. One tile does
/// all.
template <class T>
struct sort_local {
  const T* input;
  T* output;
  uint64_t count;
};

/// Places [from, to) of the merged sequence of `left` and `right`, which are sorted: output[i] becomes element i of it.
/// Of equal elements those of `left` come first. Any grid is right.
template <class T>
struct sort_merge {
  const T* left;
  const T* right;
  uint64_t left_count, right_count;
  T* output;
  uint64_t from, to;
  const uint64_t* bounds;  ///< what sort_bounds found for merge_tile; null: every tile looks for its own
};

/// How many of the first `place` elements of the merged sequence come from the left: the pivot that Tanasic et al. look
/// for between two GPUs, found as they do by reading single elements wherever they are (the merge path of Odeh et al.).
template <class T, class Less>
HPE_SORT_BOTH uint64_t pivot(const T* left, uint64_t left_count, const T* right, uint64_t right_count, uint64_t place,
                             Less less) {
  uint64_t low = place > right_count ? place - right_count : 0, high = place < left_count ? place : left_count;
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (less(right[place - 1 - middle], left[middle]))
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

/// Outputs of a block of the merge kernels on GPUs, and its threads.
inline constexpr uint32_t merge_tile = 2048, merge_threads = 256;

/// bounds[i] = pivot(from + i merge_tile), and the last one = pivot(to). One thread looks for each, so that the
/// latencies of reads from other devices overlap, which those of the tiles of a merge do not. Any grid is right.
template <class T>
struct sort_bounds {
  const T* left;
  const T* right;
  uint64_t left_count, right_count;
  uint64_t from, to;
  uint64_t* bounds;

  [[nodiscard]] constexpr uint64_t count() const { return (to - from + merge_tile - 1) / merge_tile + 1; }
  [[nodiscard]] constexpr uint64_t place(uint64_t i) const {
    return i * merge_tile < to - from ? from + i * merge_tile : to;
  }
};

}  // namespace hpe::kernels
