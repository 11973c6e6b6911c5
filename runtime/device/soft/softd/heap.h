#pragma once

/// The heap of a device, for malloc and free in kernels. The heap's records are outside of it, so a kernel that writes
/// past its memory damages only the program's own data.

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

  explicit kernel_heap(std::size_t bytes = default_size);

  /// Returns memory that is aligned to 16 bytes; nullptr if the heap has no room, or if `bytes` is 0. Thread-safe.
  [[nodiscard]] void* allocate(std::size_t bytes);
  /// Ignores addresses at which no allocation starts, such as null. Thread-safe.
  void release(void* memory);

  [[nodiscard]] bool contains(std::uintptr_t address, std::size_t bytes) const noexcept {
    const auto begin = reinterpret_cast<std::uintptr_t>(space_.data());
    return address >= begin && bytes <= space_.size() && address - begin <= space_.size() - bytes;
  }

 private:
  os::reservation space_;
  mutex mutex_;
  std::map<std::size_t, std::size_t> free_ HPE_GUARDED_BY(mutex_);              // size by offset; neighbours are joined
  std::unordered_map<std::size_t, std::size_t> in_use_ HPE_GUARDED_BY(mutex_);  // size by offset
};

}  // namespace hpe::device::soft
