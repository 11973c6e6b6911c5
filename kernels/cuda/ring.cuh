#pragma once

/// Streams a sequence from device memory through shared memory. A block of threads loads each element once, in order,
/// in whole lines of memory, before it uses the element. Therefore, the block reads a sequence on this device or on a
/// peer as fast as a copy does.

#include "kernels/cuda/async_load.cuh"

namespace hpe::kernels::gpu {

inline constexpr uint32_t line_bytes = 128;

/// A ring buffer of `capacity` elements; `capacity` must be a power of two. threads: the size of the block. All threads
/// of the block construct the object with the same values, and call load and drop together.
template <class T, uint32_t capacity, uint32_t threads>
class ring {
 public:
  static constexpr bool vectors = async_load_bytes % sizeof(T) == 0;
  /// The number of elements of a line, which is the unit of loads.
  static constexpr uint32_t line = vectors ? line_bytes / sizeof(T) : 1;
  static_assert((capacity & (capacity - 1)) == 0 && capacity % line == 0,
                "the capacity is a power of two and a multiple of a line");

  /// Creates a ring buffer in `room` for elements [from, to) of a sequence. Loads may include other elements of the
  /// same lines.
  __device__ __forceinline__ ring(T* room, const T* sequence, uint64_t from, uint64_t to) : room_(room) {
    const auto address = reinterpret_cast<uintptr_t>(sequence);
    by_vectors_ = vectors && address % sizeof(T) == 0;
    const uint64_t shift = by_vectors_ ? address % line_bytes / sizeof(T) : 0;
    // head_, end_ and loaded_ count elements from the beginning of the sequence's first line.
    source_ = sequence - shift;
    head_ = from + shift;
    end_ = to + shift;
    loaded_ = by_vectors_ ? head_ / line * line : head_;
  }

  /// Returns the number of elements that are left.
  [[nodiscard]] __device__ __forceinline__ uint64_t left() const { return end_ - head_; }
  /// Returns the index in `room` of the i-th element that is left, for any i.
  [[nodiscard]] __device__ __forceinline__ uint32_t place(uint32_t i) const {
    return (static_cast<uint32_t>(head_) + i) & (capacity - 1);
  }

  /// Starts to load as many elements as fit into the ring buffer, so that it contains at least the first capacity -
  /// line + 1 elements that are left. The elements are in shared memory after every thread has called end_loads() and
  /// waited for its groups, and a __syncthreads has followed.
  __device__ __forceinline__ void load() {
    if (by_vectors_) {
      constexpr uint32_t vector = vectors ? async_load_bytes / sizeof(T) : 1;
      const uint64_t full = head_ / line * line + capacity, last = (end_ + vector - 1) / vector * vector;
      const uint64_t stop = full < last ? full : last;
      for (uint64_t i = loaded_ + threadIdx.x * vector; i < stop; i += threads * vector)
        async_load(room_ + (static_cast<uint32_t>(i) & (capacity - 1)), source_ + i);
      loaded_ = stop > loaded_ ? stop : loaded_;
    } else {
      const uint64_t stop = end_ - head_ < capacity ? end_ : head_ + capacity;
      for (uint64_t i = loaded_ + threadIdx.x; i < stop; i += threads)
        room_[static_cast<uint32_t>(i) & (capacity - 1)] = source_[i];
      loaded_ = stop;
    }
  }

  /// Removes the first `count` elements that are left, so that load() can reuse their memory.
  __device__ __forceinline__ void drop(uint32_t count) { head_ += count; }

 private:
  T* room_;
  const T* source_;
  uint64_t head_, end_, loaded_;
  bool by_vectors_;
};

}  // namespace hpe::kernels::gpu
