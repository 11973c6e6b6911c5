#pragma once

/// The heap of a device, for malloc and free in PTX kernels. The records of allocations are outside the heap's memory,
/// so a kernel that writes past the end of an allocation damages only other allocations of kernels.

#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>

#include "runtime/base/thread_safety.h"
#include "runtime/os/virtual_memory.h"

namespace hpe::device::soft {

class kernel_heap {
 public:
  static constexpr std::size_t default_size = std::size_t{8} << 20;  // the default of CUDA devices

  /// `place`: the address of the heap, if it is free.
  explicit kernel_heap(std::size_t bytes = default_size, std::uintptr_t place = 0);

  /// Returns memory that is aligned to 16 bytes; nullptr if no free range of the heap is large enough, or if `bytes` is
  /// 0. Thread-safe.
  [[nodiscard]] void* allocate(std::size_t bytes);
  /// Frees an allocation. Does nothing if no allocation starts at `memory`, for example if it is null. Thread-safe.
  void release(void* memory);

  [[nodiscard]] bool contains(std::uintptr_t address, std::size_t bytes) const noexcept {
    const auto begin = reinterpret_cast<std::uintptr_t>(space_.data());
    return address >= begin && bytes <= space_.size() && address - begin <= space_.size() - bytes;
  }

 private:
  os::reservation space_;
  mutex mutex_;
  // The size of each free range by its offset; adjacent free ranges are merged.
  std::map<std::size_t, std::size_t> free_ HPE_GUARDED_BY(mutex_);
  std::unordered_map<std::size_t, std::size_t> in_use_ HPE_GUARDED_BY(mutex_);  // size by offset
};

}  // namespace hpe::device::soft
