#pragma once

/// Sorting and merging: the parameters of the kernels, and the order of elements. Programs and kernel bodies include
/// this header; it needs only <stdint.h>.

#include <stdint.h>

#if defined(__CUDACC__)
#define HPE_SORT_BOTH __host__ __device__ __forceinline__
#else
#define HPE_SORT_BOTH inline
#endif

namespace hpe::kernels {

/// A key with a value that moves with it.
template <class Key, class Value>
struct sort_pair {
  Key key;
  Value value;
};

/// The ascending order of keys; pairs are ordered by their keys. Keys must not be NaN. A program's own order must have
/// the same form: a type without state whose call operator is a strict weak order.
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

/// Sorts `input` into `output`; equal elements keep their order. The output is the input or does not overlap it. The
/// grid must have one tile.
template <class T>
struct sort_local {
  const T* input;
  T* output;
  uint64_t count;
};

/// Merges the sorted sequences `left` and `right`, but writes only places [from, to) of the merged sequence: output[i]
/// becomes element i. Among equal elements, those of `left` come first. The grid may have any size.
template <class T>
struct sort_merge {
  const T* left;
  const T* right;
  uint64_t left_count, right_count;
  T* output;
  uint64_t from, to;
};

/// Returns how many of the first `place` elements of the merged sequence come from the left sequence. The result is the
/// pivot of Tanasic et al. between two GPUs. As in their paper, the function finds it by reading single elements in
/// place (the merge path of Odeh et al.).
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

/// Merges up to four sorted runs, any of which may be empty, but writes only places [from, to) of the merged sequence:
/// output[i] becomes element i. Among equal elements, those of earlier runs come first. The grid may have any size.
inline constexpr uint32_t sort_runs = 4;
template <class T>
struct sort_merge_four {
  const T* runs[sort_runs];
  uint64_t counts[sort_runs];
  T* output;
  uint64_t from, to;

  [[nodiscard]] HPE_SORT_BOTH uint64_t total() const { return counts[0] + counts[1] + counts[2] + counts[3]; }
};

/// Sets split[r] to the number of elements of run r among the first `place` elements of the merged sequence. Each step
/// of the search takes the middle element of the widest open interval, and finds how many elements of each run precede
/// this element in the merged sequence. If these are together fewer than `place`, the counts are lower bounds of split,
/// otherwise upper bounds (P. Varman et al., "Merging multiple lists on hierarchical-memory multiprocessors", 1991).
template <class T, class Less>
HPE_SORT_BOTH void select_runs(const sort_merge_four<T>& p, uint64_t place, uint64_t (&split)[sort_runs], Less less) {
  uint64_t high[sort_runs];
  for (uint32_t r = 0; r < sort_runs; ++r) {
    const uint64_t others = p.total() - p.counts[r];
    split[r] = place > others ? place - others : 0;
    high[r] = place < p.counts[r] ? place : p.counts[r];
  }
  for (;;) {
    uint32_t widest = 0;
    for (uint32_t r = 1; r < sort_runs; ++r)
      if (high[r] - split[r] > high[widest] - split[widest]) widest = r;
    if (high[widest] == split[widest]) return;
    const uint64_t middle = split[widest] + (high[widest] - split[widest]) / 2;
    const T& element = p.runs[widest][middle];
    uint64_t preceding[sort_runs], all = 0;
    for (uint32_t r = 0; r < sort_runs; ++r) {
      uint64_t from = split[r], to = r == widest ? from : high[r];
      while (from < to) {
        const uint64_t there = from + (to - from) / 2;
        const T& other = p.runs[r][there];
        if (r < widest ? !less(element, other) : less(other, element))
          from = there + 1;
        else
          to = there;
      }
      preceding[r] = r == widest ? middle : from;
      all += preceding[r];
    }
    for (uint32_t r = 0; r < sort_runs; ++r) {
      if (all < place)
        split[r] = preceding[r] + (r == widest);
      else
        high[r] = preceding[r];
    }
  }
}

/// The number of threads in a block of the merge kernels on GPUs, and a fast number of blocks for `count` outputs on a
/// device with `units` compute units: as many as the device runs at a time. Each block reads a range of both sequences;
/// a few long ranges are read from a peer faster than many short ones.
inline constexpr uint32_t merge_threads = 128;
[[nodiscard]] constexpr uint32_t merge_blocks(uint64_t count, uint32_t units) {
  constexpr uint64_t least = 4096, each_unit = 5;
  const uint64_t blocks = (count + least - 1) / least;
  return uint32_t(blocks < each_unit * units ? blocks : each_unit * units);
}

}  // namespace hpe::kernels
