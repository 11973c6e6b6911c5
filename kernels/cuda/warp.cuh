#pragma once

/// Scans and reductions over the lanes of one warp, for values of 4 or 8 bytes. All 32 lanes of the warp must call
/// these functions together.

#include <stdint.h>
#include <string.h>

namespace hpe::kernels::gpu {

inline constexpr unsigned all_lanes = 0xffffffffU;
inline constexpr unsigned warp_size = 32;

/// The unsigned integer type with the size of a value, for shuffles and single memory operations.
template <unsigned bytes>
struct bits_of_size;
template <>
struct bits_of_size<4> {
  using type = unsigned;
};
template <>
struct bits_of_size<8> {
  using type = unsigned long long;
};
template <class T>
using bits_of = typename bits_of_size<sizeof(T)>::type;

template <class To, class From>
__device__ __forceinline__ To bit_cast(const From& from) {
  static_assert(sizeof(To) == sizeof(From), "two types of one size");
  To to;
  memcpy(&to, &from, sizeof(To));
  return to;
}

template <class T>
__device__ __forceinline__ T shuffle_up(T value, unsigned distance) {
  return bit_cast<T>(__shfl_up_sync(all_lanes, bit_cast<bits_of<T>>(value), distance));
}
template <class T>
__device__ __forceinline__ T shuffle_down(T value, unsigned distance) {
  return bit_cast<T>(__shfl_down_sync(all_lanes, bit_cast<bits_of<T>>(value), distance));
}
template <class T>
__device__ __forceinline__ T shuffle(T value, unsigned lane) {
  return bit_cast<T>(__shfl_sync(all_lanes, bit_cast<bits_of<T>>(value), lane));
}

__device__ __forceinline__ unsigned lane_number() {
  unsigned lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
}

/// Returns true in one lane. The asm is volatile: if the compiler knew that the result does not change in a loop, it
/// would generate one loop for this lane and another loop for the other lanes. The lanes would then converge only in
/// shuffles, which makes the loop slow.
__device__ __forceinline__ bool is_leader() {
  unsigned lane;
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane == 0;
}

/// Scans `count` rows: lane i receives the combination of the values of lanes 0 to i, in order. Rows are interleaved,
/// so that the shuffles of one row hide the latency of those of another.
template <unsigned count, class T, class Op>
__device__ __forceinline__ void warp_scan_rows(T (&value)[count], Op op, unsigned lane) {
#pragma unroll
  for (unsigned d = 1; d < warp_size; d *= 2) {
    T before[count];
#pragma unroll
    for (unsigned r = 0; r < count; ++r) before[r] = shuffle_up(value[r], d);
#pragma unroll
    for (unsigned r = 0; r < count; ++r)
      if (lane >= d) value[r] = op(before[r], value[r]);
  }
}

template <class T, class Op>
__device__ __forceinline__ T warp_scan(T value, Op op, unsigned lane) {
  T row[1] = {value};
  warp_scan_rows(row, op, lane);
  return row[0];
}

/// Scans rows as warp_scan_rows does, but within segments: bit i of heads[r] is set if a segment begins in lane i of
/// row r. The input value of such a lane must combine only the elements of the lane from the last beginning of a
/// segment on.
template <unsigned count, class T, class Op>
__device__ __forceinline__ void warp_segmented_scan_rows(T (&value)[count], const unsigned (&heads)[count], Op op,
                                                         unsigned lane) {
  unsigned reach[count];  // the number of lanes before this one whose values belong to the same segment
#pragma unroll
  for (unsigned r = 0; r < count; ++r) {
    const unsigned up_to_here = heads[r] & (all_lanes >> (warp_size - 1 - lane));
    reach[r] = up_to_here == 0 ? lane : lane - (warp_size - 1 - __clz(up_to_here));
  }
#pragma unroll
  for (unsigned d = 1; d < warp_size; d *= 2) {
    T before[count];
#pragma unroll
    for (unsigned r = 0; r < count; ++r) before[r] = shuffle_up(value[r], d);
#pragma unroll
    for (unsigned r = 0; r < count; ++r)
      if (reach[r] >= d) value[r] = op(before[r], value[r]);
  }
}

/// Combines the values of all lanes in order; every lane receives the result.
template <class T, class Op>
__device__ __forceinline__ T warp_reduce(T value, Op op) {
#pragma unroll
  for (unsigned d = 1; d < warp_size; d *= 2) value = op(value, shuffle_down(value, d));
  return shuffle(value, 0);
}

}  // namespace hpe::kernels::gpu
