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

/// Threads in a block of the merge kernels on GPUs, and a good number of blocks for `count` outputs on a device of so
/// many compute units: as many as find room on it at once. Each has a part of both sides, and few long parts are read
/// from a peer faster than many short ones.
inline constexpr uint32_t merge_threads = 128;
[[nodiscard]] constexpr uint32_t merge_blocks(uint64_t count, uint32_t units) {
  constexpr uint64_t least = 4096, each_unit = 5;
  const uint64_t blocks = (count + least - 1) / least;
  return uint32_t(blocks < each_unit * units ? blocks : each_unit * units);
}

}  // namespace hpe::kernels
