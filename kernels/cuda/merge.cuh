#pragma once

/// Merges two sorted sequences on a GPU. HPE_CUDA_MERGE(name, T, Less) defines the kernels sort_bounds_name and
/// sort_merge_name, also in a module of a program's own.

#include "kernels/sort.h"

namespace hpe::kernels::gpu {

template <class T>
struct merge_memory {
  // Bytes, since shared memory holds no objects with constructors.
  alignas(16) unsigned char elements[merge_tile * sizeof(T)];
  uint64_t bounds[2];
};

/// Each block takes tiles of merge_tile outputs: finds which parts of both sides they come from, brings these into shared
/// memory, and lets each thread merge its own few.
template <class T, class Less>
__device__ void merge_tiles(const sort_merge<T>& p, merge_memory<T>& shared, Less less) {
  constexpr uint32_t each = merge_tile / merge_threads;
  T* const near = reinterpret_cast<T*>(shared.elements);
  for (uint64_t begin = p.from + uint64_t{blockIdx.x} * merge_tile; begin < p.to;
       begin += uint64_t{gridDim.x} * merge_tile) {
    const uint64_t end = p.to - begin < merge_tile ? p.to : begin + merge_tile;
    if (p.bounds != nullptr) {
      if (threadIdx.x < 2) shared.bounds[threadIdx.x] = p.bounds[(begin - p.from) / merge_tile + threadIdx.x];
    } else if (threadIdx.x < 2)
      shared.bounds[threadIdx.x] =
          pivot(p.left, p.left_count, p.right, p.right_count, threadIdx.x == 0 ? begin : end, less);
    __syncthreads();
    const uint64_t left = shared.bounds[0], right = begin - left;
    const auto count = static_cast<uint32_t>(end - begin);
    const auto from_left = static_cast<uint32_t>(shared.bounds[1] - left), from_right = count - from_left;
    for (uint32_t i = threadIdx.x; i < count; i += merge_threads)
      near[i] = i < from_left ? p.left[left + i] : p.right[right + (i - from_left)];
    __syncthreads();

    const uint32_t place = threadIdx.x * each < count ? threadIdx.x * each : count;
    auto l = static_cast<uint32_t>(pivot(near, from_left, near + from_left, from_right, place, less));
    uint32_t r = place - l;
    T merged[each];
#pragma unroll
    for (uint32_t i = 0; i < each; ++i) {
      if (place + i >= count) break;
      const bool right_first = l >= from_left || (r < from_right && less(near[from_left + r], near[l]));
      merged[i] = right_first ? near[from_left + r] : near[l];
      r += right_first;
      l += !right_first;
    }
    __syncthreads();
#pragma unroll
    for (uint32_t i = 0; i < each; ++i)
      if (place + i < count) near[place + i] = merged[i];
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < count; i += merge_threads) p.output[begin + i] = near[i];
    __syncthreads();
  }
}

template <class T, class Less>
__device__ void find_bounds(const sort_bounds<T>& p, Less less) {
  for (uint64_t i = blockIdx.x * uint64_t{blockDim.x} + threadIdx.x; i < p.count(); i += uint64_t{gridDim.x} * blockDim.x)
    p.bounds[i] = pivot(p.left, p.left_count, p.right, p.right_count, p.place(i), less);
}

}  // namespace hpe::kernels::gpu

#define HPE_CUDA_MERGE(name, T, Less)                                                                                 \
  extern "C" __global__ __launch_bounds__(hpe::kernels::merge_threads) void sort_bounds_##name(                       \
      const __grid_constant__ hpe::kernels::sort_bounds<T> p) {                                                       \
    hpe::kernels::gpu::find_bounds<T, Less>(p, Less{});                                                               \
  } \
  extern "C" __global__ __launch_bounds__(hpe::kernels::merge_threads) void sort_merge_##name(                        \
      const __grid_constant__ hpe::kernels::sort_merge<T> p) {                                                        \
    __shared__ hpe::kernels::gpu::merge_memory<T> shared;                                                             \
    hpe::kernels::gpu::merge_tiles<T, Less>(p, shared, Less{});                                                       \
  }
