#pragma once

/// Scans in three launches: the totals of chunks, scans of these totals, and scans of the chunks (Dieguez et al.,
/// section 3). A block has any number of whole warps. A thread holds P elements, in rows of 16-byte vectors. A block
/// makes K iterations over a chunk; each iteration continues from the result of the previous one (the cascade, Figure
/// 5).

#include <stdint.h>

#include "kernels/cuda/block.cuh"
#include "kernels/cuda/scan_tile.cuh"
#include "kernels/scan.h"

namespace hpe::kernels::gpu {

/// The number of 16-byte vectors that a thread holds in registers at a time: P is 8 for values of 4 bytes (premise 2).
inline constexpr unsigned rows_per_thread = 2;

template <class T, class Op>
class three_stage {
  static constexpr unsigned V = vector_length<T>;
  static constexpr unsigned segment_length = rows_per_thread * warp_size * V;

 public:
  __device__ __forceinline__ three_stage(const scan_three_stages<T>& parameters, Op op, block_memory<T>& shared)
      : p_(parameters), op_(op), shared_(shared), lane_(lane_number()), warp_(threadIdx.x / warp_size) {}

  __device__ __forceinline__ void reduce() {
    for_chunks([&](uint64_t problem, uint64_t chunk, const T* input, T*, uint64_t count) {
      // Each warp reduces one contiguous range of the chunk, so that the warps synchronise only once.
      const run all = run_at(input, count);
      const uint64_t segments = (all.to + segment_length - 1) / segment_length;
      const unsigned warps = blockDim.x / warp_size;
      T total = op_.identity();
      for (uint64_t s = segments * warp_ / warps; s < segments * (warp_ + 1) / warps; ++s) {
        T here;
        on_segment(all, s * segment_length, [&](const auto& segment) { here = segment.total(); });
        total = op_(total, here);
      }
      total = block_scan(total, shared_, op_).all;
      if (threadIdx.x == 0) p_.sums[problem * p_.sums_per_problem + p_.first_sum + chunk] = total;
    });
  }

  /// A block of one row (blockDim.y = 1) processes one problem at a time. In a block of several rows, each warp (a row
  /// of 32 threads) processes one problem at a time.
  __device__ __forceinline__ void sums() {
    const uint64_t first = uint64_t{blockIdx.x} * blockDim.y + threadIdx.y, step = uint64_t{gridDim.x} * blockDim.y;
    for (uint64_t problem = first; problem < p_.share.problems; problem += step) {
      T* const row = p_.sums + problem * p_.sums_per_problem;
      if (blockDim.y == 1)
        scan(row, row, p_.sums_per_problem, op_.identity(), false);
      else
        scan_by_warp(row, p_.sums_per_problem);
    }
  }

  __device__ __forceinline__ void chunks() {
    for_chunks([&](uint64_t problem, uint64_t chunk, const T* input, T* output, uint64_t count) {
      const T before =
          p_.sums == nullptr ? op_.identity() : p_.sums[problem * p_.sums_per_problem + p_.first_sum + chunk];
      scan(input, output, count, before, p_.inclusive != 0);
    });
  }

 private:
  /// Elements [from, to), counted from an address that has the alignment of vectors.
  struct run {
    const T* data;
    uint64_t from, to;
  };
  [[nodiscard]] static __device__ __forceinline__ run run_at(const T* input, uint64_t count) {
    const uint64_t skip = reinterpret_cast<uintptr_t>(input) % 16 / sizeof(T);
    return {input - skip, skip, skip + count};
  }

  template <class Body>
  __device__ __forceinline__ void for_chunks(Body body) {
    const scan_share& share = p_.share;
    const uint64_t chunks = share.chunks(), all = chunks * share.problems;
    for (uint64_t n = blockIdx.x; n < all; n += gridDim.x) {
      const uint64_t problem = n / chunks, chunk = n % chunks;
      const uint64_t begin = share.from + chunk * share.chunk;
      const uint64_t rest = share.to - begin;
      const uint64_t at = problem * share.length + begin;
      body(problem, chunk, p_.input + at, p_.output + at, rest < share.chunk ? rest : share.chunk);
    }
  }

  /// Calls body with the segment that begins at element `at` of the run.
  template <class Body>
  __device__ __forceinline__ void on_segment(const run& all, uint64_t at, Body body) const {
    const T* const data = all.data + at;
    if (at >= all.from && at + segment_length <= all.to) {
      body(segment<T, Op, rows_per_thread, true>{data, 0, {0, segment_length}, lane_, op_});
    } else {
      const uint64_t from = at < all.from ? all.from - at : 0;
      const uint64_t to = at < all.to ? (all.to - at < segment_length ? all.to - at : segment_length) : 0;
      body(segment<T, Op, rows_per_thread, false>{
          data, 0, {static_cast<unsigned>(from), static_cast<unsigned>(to)}, lane_, op_});
    }
  }

  /// Scans `count` elements, starting from the value `before`. All threads of the block must call this function.
  __device__ __forceinline__ void scan(const T* input, T* output, uint64_t count, T before, bool inclusive) {
    const run all = run_at(input, count);
    T* const target = output - all.from;
    const bool aligned = reinterpret_cast<uintptr_t>(target) % 16 == 0;
    const uint64_t step = uint64_t{blockDim.x} / warp_size * segment_length;
    for (uint64_t base = 0; base < all.to; base += step) {
      const uint64_t at = base + warp_ * segment_length;
      T total = op_.identity();
      if (at < all.to) on_segment(all, at, [&](const auto& segment) { total = segment.total(); });
      const block_prefix<T> found = block_scan(total, shared_, op_);
      if (at < all.to)
        on_segment(all, at, [&](const auto& segment) {
          segment.scan(target + at, op_(before, found.before), inclusive, aligned);
        });
      before = op_(before, found.all);
    }
  }

  /// Scans a row in place, exclusively, by one warp.
  __device__ __forceinline__ void scan_by_warp(T* row, uint64_t count) {
    T before = op_.identity();
    for (uint64_t at = lane_; at - lane_ < count; at += warp_size) {
      const T scanned = warp_scan(at < count ? row[at] : op_.identity(), op_, lane_);
      const T ahead = shuffle_up(scanned, 1);
      if (at < count) row[at] = lane_ == 0 ? before : op_(before, ahead);
      before = op_(before, shuffle(scanned, warp_size - 1));
    }
  }

  const scan_three_stages<T>& p_;
  const Op op_;
  block_memory<T>& shared_;
  const unsigned lane_, warp_;
};

}  // namespace hpe::kernels::gpu
