#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "runtime/base/thread_safety.h"

namespace hpe::cuda_hooks {

/// Records the host memory that the program has pinned. memcpy asks this table and not the driver, because the driver
/// itself calls memcpy, also while it holds its locks. Memory that the driver has unpinned with its context stays in
/// the table. Thread-safe.
class pinned_by_program {
 public:
  static pinned_by_program& of_process();

  /// To be called after the program has pinned memory. If host memory is too short, the memory is not recorded.
  void add(const void* begin, std::size_t bytes) noexcept;
  /// To be called before the program unpins memory that begins at an address.
  void remove(const void* begin) noexcept;
  /// Whether all bytes are in one pinned range. Allocates no memory. Signals must be blocked.
  [[nodiscard]] bool has(const void* begin, std::size_t bytes) const noexcept;

 private:
  mutable mutex mutex_;                                                     // held only while signals are blocked
  std::map<std::uintptr_t, std::uintptr_t> ranges_ HPE_GUARDED_BY(mutex_);  // by begin: the end
};

}  // namespace hpe::cuda_hooks
