#pragma once

/// Merges two sorted sequences on a GPU. HPE_CUDA_MERGE(name, T, Less) defines the kernel sort_merge_name, also in a
/// module of a program's own.

#include "kernels/cuda/ring.cuh"
#include "kernels/cuda/warp.cuh"
#include "kernels/sort.h"

namespace hpe::kernels::gpu {

[[nodiscard]] constexpr uint32_t power_of_two_within(uint32_t n) {
  uint32_t power = 1;
  while (power <= n / 2) power *= 2;
  return power;
}

/// A block merges in steps. While it merges one, the loads of the next are on their way; so there is room for two steps
/// of either side, since all of a step may come from one. Each thread's number of outputs is odd, for the banks of
/// shared memory.
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
  // Bytes, since shared memory holds no objects with constructors.
  alignas(16) unsigned char sides[2 * shape::capacity * sizeof(T)];
  alignas(16) unsigned char merged[shape::step * sizeof(T)];
  uint64_t bounds[2];
  uint32_t from_left;
};

/// kernels::pivot by the lanes of a warp, which look at 32 places at once: six latencies of memory for 2^27 elements
/// instead of 27.
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

/// One step: the next `count` of the merged sequence, each thread its own few. whole: count is that of a full step, and
/// either side has as many elements left, so that neither can come to its end before the step does.
template <bool whole, class T, class Less>
__device__ __forceinline__ void merge_step(const typename merge_shape<T>::side& left,
                                           const typename merge_shape<T>::side& right, uint32_t count,
                                           merge_memory<T>& shared, Less less) {
  using shape = merge_shape<T>;
  constexpr uint32_t each = shape::each, capacity = shape::capacity, mask = capacity - 1;
  const T* const near = reinterpret_cast<const T*>(shared.sides);
  T* const merged = reinterpret_cast<T*>(shared.merged);
  if (whole) count = shape::step;
  const uint32_t a = whole || left.left() > count ? count : static_cast<uint32_t>(left.left());
  const uint32_t b = whole || right.left() > count ? count : static_cast<uint32_t>(right.left());
  const uint32_t left_begin = left.place(0), right_begin = right.place(0);

  const uint32_t place = whole || threadIdx.x * each < count ? threadIdx.x * each : count;
  uint32_t low = place > b ? place - b : 0, high = place < a ? place : a;
  while (low < high) {
    const uint32_t middle = (low + high) / 2;
    if (less(near[capacity + ((right_begin + place - 1 - middle) & mask)], near[(left_begin + middle) & mask]))
      high = middle;
    else
      low = middle + 1;
  }
  // Elements behind the ends are loaded and not used.
  uint32_t l = left_begin + low, r = right_begin + place - low;
  const uint32_t left_end = left_begin + a, right_end = right_begin + b;
  T of_left = near[l & mask], of_right = near[capacity + (r & mask)];
  T mine[each];
#pragma unroll
  for (uint32_t i = 0; i < each; ++i) {
    if (!whole && place + i >= count) break;
    const bool right_first =
        whole ? less(of_right, of_left) : l == left_end || (r != right_end && less(of_right, of_left));
    mine[i] = right_first ? of_right : of_left;
    l += !right_first;
    r += right_first;
    const T next = near[right_first ? capacity + (r & mask) : l & mask];
    if (right_first)
      of_right = next;
    else
      of_left = next;
  }
  if (place < count && place + each >= count) shared.from_left = l - left_begin;
#pragma unroll
  for (uint32_t i = 0; i < each; ++i)
    if (whole || place + i < count) merged[place + i] = mine[i];
}

/// What a step left in shared memory, to where it belongs.
template <bool whole, class T>
__device__ __forceinline__ void write_step(const merge_memory<T>& shared, T* output, uint32_t count) {
  const T* const merged = reinterpret_cast<const T*>(shared.merged);
#pragma unroll
  for (uint32_t i = 0; i < merge_shape<T>::each; ++i) {
    const uint32_t place = i * merge_threads + threadIdx.x;
    if (whole || place < count) output[place] = merged[place];
  }
}

/// Each block has one part of the outputs, finds once which parts of both sides these come from, and streams the two
/// through shared memory.
template <class T, class Less>
__device__ void merge_part(const sort_merge<T>& p, merge_memory<T>& shared, Less less) {
  using shape = merge_shape<T>;
  using side = typename shape::side;
  const uint64_t count = p.to - p.from;
  const uint64_t part = ((count + gridDim.x - 1) / gridDim.x + side::line - 1) / side::line * side::line;
  if (part * blockIdx.x >= count) return;
  uint64_t begin = p.from + part * blockIdx.x;
  const uint64_t end = p.to - begin < part ? p.to : begin + part;

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
    if (step == shape::step)
      write_step<true>(shared, p.output + begin, step);
    else
      write_step<false>(shared, p.output + begin, step);
    begin += step;
    wait_for_loads<1>();  // those before: the next step needs no more
    __syncthreads();
  }
}

}  // namespace hpe::kernels::gpu

#define HPE_CUDA_MERGE(name, T, Less)                                                          \
  extern "C" __global__ __launch_bounds__(hpe::kernels::merge_threads) void sort_merge_##name( \
      const __grid_constant__ hpe::kernels::sort_merge<T> p) {                                 \
    __shared__ hpe::kernels::gpu::merge_memory<T> shared;                                      \
    hpe::kernels::gpu::merge_part<T, Less>(p, shared, Less{});                                 \
  }
