#pragma once

/// What one warp does with its segment of a tile in shared memory: it combines the elements, or scans them and writes
/// the result.
///
/// A warp processes its segment in rows of 32 vectors of 16 bytes, which is the fastest way to access both shared and
/// device memory. Rows are first scanned independently, so that their shuffles overlap, and then joined (Dieguez et
/// al., section 3.1, Figure 4; LightScan, section 4.1).

#include <stdint.h>

#include "kernels/cuda/warp.cuh"

namespace hpe::kernels::gpu {

template <class T>
inline constexpr unsigned vector_length = 16 / sizeof(T);

/// Elements [from, to) of a stage belong to the tile. The other elements of the stage are read as the identity and are
/// not written.
struct window_of_tile {
  unsigned from, to;
};

template <class T>
struct alignas(16) vector_of {
  T at[vector_length<T>];
};

/// The segment [begin, begin + rows * 32 * V) of a stage, where V = 16 / sizeof(T).
template <class T, class Op, unsigned rows, bool whole>
struct segment {
  static constexpr unsigned V = vector_length<T>;
  static constexpr unsigned row_length = warp_size * V;

  const T* stage;
  unsigned begin;
  window_of_tile tile;
  unsigned lane;
  Op op;

  [[nodiscard]] __device__ __forceinline__ unsigned place(unsigned row) const {
    return begin + row * row_length + lane * V;
  }

  [[nodiscard]] __device__ __forceinline__ vector_of<T> load(unsigned row) const {
    const unsigned at = place(row);
    vector_of<T> v = *reinterpret_cast<const vector_of<T>*>(stage + at);
    if (!whole) {
#pragma unroll
      for (unsigned i = 0; i < V; ++i)
        if (at + i < tile.from || at + i >= tile.to) v.at[i] = op.identity();
    }
    return v;
  }

  /// Combines all elements; every lane receives the result.
  [[nodiscard]] __device__ __forceinline__ T total() const {
    T sum = op.identity();
    if constexpr (Op::commutative) {
#pragma unroll
      for (unsigned r = 0; r < rows; ++r) {
        const vector_of<T> v = load(r);
        T here = v.at[0];
#pragma unroll
        for (unsigned i = 1; i < V; ++i) here = op(here, v.at[i]);
        sum = op(sum, here);
      }
      return warp_reduce(sum, op);
    } else {
#pragma unroll
      for (unsigned r = 0; r < rows; ++r) {
        const vector_of<T> v = load(r);
        T here = v.at[0];
#pragma unroll
        for (unsigned i = 1; i < V; ++i) here = op(here, v.at[i]);
        sum = op(sum, warp_reduce(here, op));
      }
      return sum;
    }
  }

  /// Writes a vector of results. output: the output address of the stage's element 0.
  __device__ __forceinline__ void store(T* output, unsigned row, const vector_of<T>& v, bool aligned) const {
    const unsigned at = place(row);
    if (aligned && (whole || (at >= tile.from && at + V <= tile.to))) {
      const int4 bits = bit_cast<int4>(v);
      __stcs(reinterpret_cast<int4*>(output + at), bits);
    } else {
#pragma unroll
      for (unsigned i = 0; i < V; ++i)
        if (whole || (at + i >= tile.from && at + i < tile.to)) output[at + i] = v.at[i];
    }
  }

  /// Scans the segment, starting from the value `before`, and writes the result.
  __device__ __forceinline__ void scan(T* output, T before, bool inclusive, bool aligned) const {
    vector_of<T> v[rows];
    T sum[rows];  // for each row: the combination of the vectors up to this lane's
#pragma unroll
    for (unsigned r = 0; r < rows; ++r) v[r] = load(r);
#pragma unroll
    for (unsigned r = 0; r < rows; ++r) {
#pragma unroll
      for (unsigned i = 1; i < V; ++i) v[r].at[i] = op(v[r].at[i - 1], v[r].at[i]);
      sum[r] = v[r].at[V - 1];
    }
    warp_scan_rows(sum, op, lane);
    T ahead[rows];  // for each row: the combination of the vectors before this lane's
#pragma unroll
    for (unsigned r = 0; r < rows; ++r) {
      ahead[r] = shuffle_up(sum[r], 1);
      sum[r] = shuffle(sum[r], warp_size - 1);
    }
#pragma unroll
    for (unsigned r = 0; r < rows; ++r) {
      const T base = lane == 0 ? before : op(before, ahead[r]);
      vector_of<T> result;
      if (inclusive) {
#pragma unroll
        for (unsigned i = 0; i < V; ++i) result.at[i] = op(base, v[r].at[i]);
      } else {
        result.at[0] = base;
#pragma unroll
        for (unsigned i = 1; i < V; ++i) result.at[i] = op(base, v[r].at[i - 1]);
      }
      store(output, r, result, aligned);
      before = op(before, sum[r]);
    }
  }

  /// Scans as scan() does, for tiles in which problems begin. `offset(place)` returns the index of a stage's element
  /// within its problem; 0 for the problem's first element. `before` is the combination of the elements before the
  /// segment that belong to the same problem as the segment's first element.
  template <class Offset>
  __device__ __forceinline__ void segmented_scan(T* output, T before, bool inclusive, bool aligned, uint64_t length,
                                                 Offset offset) const {
    vector_of<T> v[rows];
    unsigned heads[rows];      // bit i: a problem begins at element i of the vector
    unsigned beginning[rows];  // bit i: a problem begins in the vector of lane i
    T sum[rows];               // by row: the combination from the last beginning of a problem to this lane's vector
#pragma unroll
    for (unsigned r = 0; r < rows; ++r) {
      v[r] = load(r);
      heads[r] = 0;
      uint64_t at = offset(place(r));
#pragma unroll
      for (unsigned i = 0; i < V; ++i) {
        if (at == 0) heads[r] |= 1U << i;
        if (++at == length) at = 0;
      }
#pragma unroll
      for (unsigned i = 1; i < V; ++i)
        if ((heads[r] >> i & 1) == 0) v[r].at[i] = op(v[r].at[i - 1], v[r].at[i]);
      beginning[r] = __ballot_sync(all_lanes, heads[r] != 0);
      sum[r] = v[r].at[V - 1];
    }
    warp_segmented_scan_rows(sum, beginning, op, lane);
#pragma unroll
    for (unsigned r = 0; r < rows; ++r) {
      T ahead = shuffle_up(sum[r], 1);
      if (lane == 0) ahead = op.identity();
      const bool continued = (beginning[r] & ~(all_lanes << lane)) == 0;
      const T base = continued ? op(before, ahead) : ahead;
      vector_of<T> result;
      bool begun = false;  // whether a problem has begun at or before element i
#pragma unroll
      for (unsigned i = 0; i < V; ++i) {
        const bool head = (heads[r] >> i & 1) != 0;
        if (inclusive) {
          begun |= head;
          result.at[i] = begun ? v[r].at[i] : op(base, v[r].at[i]);
        } else {
          const T last = v[r].at[i == 0 ? 0 : i - 1];
          const T earlier = i == 0 ? base : (begun ? last : op(base, last));
          result.at[i] = head ? op.identity() : earlier;
          begun |= head;
        }
      }
      store(output, r, result, aligned);
      const T last = shuffle(sum[r], warp_size - 1);
      before = beginning[r] == 0 ? op(before, last) : last;
    }
  }
};

}  // namespace hpe::kernels::gpu
