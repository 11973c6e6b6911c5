#pragma once

/// Merges two sorted sequences on a GPU. HPE_CUDA_MERGE(name, T, Less) defines the kernels sort_merge_<name> and
/// sort_merge_four_<name>. kernels/cuda/merge.cu uses the macro for hpe's own types; a program can use it in its own
/// module to merge another type or order.

#include "kernels/cuda/merge_four.cuh"
#include "kernels/cuda/merge_near.cuh"
#include "kernels/cuda/ring.cuh"
#include "kernels/cuda/warp.cuh"
#include "kernels/sort.h"

namespace hpe::kernels::gpu {

/// The sizes of a merge in steps of a fixed number of outputs. While a block merges one step, it loads the elements of
/// the next. All elements of a step may come from one sequence, so shared memory holds two steps of each sequence. Each
/// thread's number of outputs is odd, which avoids bank conflicts in shared memory.
template <class T>
struct merge_shape {
  static_assert(sizeof(T) <= 32, "elements of merges on GPUs have at most 32 bytes");
  static constexpr uint32_t capacity = power_of_two_within(16384 / sizeof(T));
  using side = ring<T, capacity, merge_threads>;
  static constexpr uint32_t fitting = (capacity - side::line) / (2 * merge_threads);
  static constexpr uint32_t each = fitting % 2 == 0 ? fitting - 1 : fitting;
  static constexpr uint32_t step = each * merge_threads;
};

template <class T>
struct merge_memory {
  using shape = merge_shape<T>;
  // These arrays are bytes, because variables in shared memory cannot have constructors.
  alignas(16) unsigned char sides[2 * shape::capacity * sizeof(T)];
  alignas(16) unsigned char merged[shape::step * sizeof(T)];
  uint64_t bounds[2];
  uint32_t from_left;
};

/// Computes kernels::pivot by a warp, whose lanes read 32 elements at a time: for 2^27 elements, this takes six memory
/// latencies instead of 27.
template <class T, class Less>
__device__ uint64_t warp_pivot(const sort_merge<T>& p, uint64_t place, Less less) {
  const unsigned lane = lane_number();
  uint64_t low = place > p.right_count ? place - p.right_count : 0, high = place < p.left_count ? place : p.left_count;
  while (low < high) {
    const uint64_t range = high - low;
    const auto probe = [&](unsigned i) {
      return range <= warp_size ? low + i : low + range / (warp_size + 1) * (i + 1);
    };
    const uint64_t middle = probe(lane);
    const bool beyond = middle >= high || less(p.right[place - 1 - middle], p.left[middle]);
    const auto before = static_cast<unsigned>(__popc(__ballot_sync(all_lanes, !beyond)));
    if (before < warp_size && probe(before) < high) high = probe(before);
    if (before > 0) low = probe(before - 1) + 1;
  }
  return low;
}

/// Merges one step: the next `count` elements of the merged sequence. whole: the step has the full size, and each
/// sequence has at least as many elements left, so that neither sequence ends within the step.
template <bool whole, class T, class Less>
__device__ __forceinline__ void merge_step(const typename merge_shape<T>::side& left,
                                           const typename merge_shape<T>::side& right, uint32_t count,
                                           merge_memory<T>& shared, Less less) {
  using shape = merge_shape<T>;
  constexpr uint32_t mask = shape::capacity - 1;
  if (whole) count = shape::step;
  const near_sequence a{0, left.place(0), mask, whole || left.left() > count ? count : uint32_t(left.left())};
  const near_sequence b{shape::capacity, right.place(0), mask,
                        whole || right.left() > count ? count : uint32_t(right.left())};
  merge_beginning<whole, shape::each>(reinterpret_cast<const T*>(shared.sides), a, b, count,
                                      reinterpret_cast<T*>(shared.merged), shared.from_left, less);
}

/// Each block computes one range of the outputs: it finds the matching ranges of both sequences once, and streams these
/// ranges through shared memory.
template <class T, class Less>
__device__ void merge_part(const sort_merge<T>& p, merge_memory<T>& shared) {
  const Less less{};
  using shape = merge_shape<T>;
  using side = typename shape::side;
  const auto [first, end] = part_of_block(p.from, p.to, side::line);
  if (first >= end) return;
  uint64_t begin = first;

  const unsigned warp = threadIdx.x / warp_size;
  if (warp < 2) {
    const uint64_t found = warp_pivot(p, warp == 0 ? begin : end, less);
    if (is_leader()) shared.bounds[warp] = found;
  }
  __syncthreads();
  const uint64_t from = shared.bounds[0], to = shared.bounds[1];
  T* const room = reinterpret_cast<T*>(shared.sides);
  side left(room, p.left, from, to), right(room + shape::capacity, p.right, begin - from, end - to);

  const auto load = [&] {
    left.load();
    right.load();
    end_loads();
  };
  load();
  wait_for_loads<0>();
  __syncthreads();
  while (begin < end) {
    const uint32_t step = end - begin < shape::step ? static_cast<uint32_t>(end - begin) : shape::step;
    const bool whole = left.left() >= shape::step && right.left() >= shape::step;
    if (whole)
      merge_step<true>(left, right, step, shared, less);
    else
      merge_step<false>(left, right, step, shared, less);
    __syncthreads();
    const uint32_t from_left = shared.from_left;
    left.drop(from_left);
    right.drop(step - from_left);
    load();
    write_step<shape>(reinterpret_cast<const T*>(shared.merged), p.output + begin, step);
    begin += step;
    wait_for_loads<1>();  // waits for all loads but the last group, which the next step does not need
    __syncthreads();
  }
}

}  // namespace hpe::kernels::gpu

#define HPE_CUDA_MERGE_KERNEL(kernel, Parameters, Memory, merge)                    \
  extern "C" __global__ __launch_bounds__(hpe::kernels::merge_threads) void kernel( \
      const __grid_constant__ Parameters p) {                                       \
    __shared__ Memory shared;                                                       \
    merge(p, shared);                                                               \
  }
#define HPE_CUDA_MERGE(name, T, Less)                                                                       \
  HPE_CUDA_MERGE_KERNEL(sort_merge_##name, hpe::kernels::sort_merge<T>, hpe::kernels::gpu::merge_memory<T>, \
                        (hpe::kernels::gpu::merge_part<T, Less>))                                           \
  HPE_CUDA_MERGE_KERNEL(sort_merge_four_##name, hpe::kernels::sort_merge_four<T>,                           \
                        hpe::kernels::gpu::merge_four_memory<T>, (hpe::kernels::gpu::merge_four_part<T, Less>))
