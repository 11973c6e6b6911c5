#pragma once

/// Threads that allocate the pages of new device memory while kernels and copies run. Without these threads, page
/// faults would allocate small pages, at a tenth of the rate at which these threads allocate huge pages.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "runtime/base/thread_safety.h"

namespace hpe::device::soft {

/// Thread-safe. The object exists until the process ends.
class page_maker {
 public:
  /// `threads`: the largest number of threads; if it is 0, page faults allocate all pages. `budget`: the largest number
  /// of bytes that the threads allocate in all current ranges together; page faults allocate the remaining pages.
  page_maker(unsigned threads, std::size_t budget) : most_threads_(threads), budget_(budget) {}

  /// Adds a range that was mapped. The threads then allocate its pages, unless the range is smaller than 8 MiB.
  void add(std::uintptr_t address, std::size_t bytes);
  /// Removes all ranges inside a range that is about to be unmapped. A thread may continue to allocate pages there for
  /// a moment. This is harmless, because the operating system allocates no pages where nothing is mapped, and new pages
  /// of a later mapping contain zeros.
  void remove(std::uintptr_t address, std::size_t bytes);

 private:
  struct populated_range {
    std::size_t bytes;
    std::size_t begun;  // bytes whose pages a thread has allocated or is allocating
  };
  /// The memory whose pages one system call allocates.
  struct populate_call {
    std::uintptr_t address;
    std::size_t bytes;
  };

  [[nodiscard]] std::optional<populate_call> next() HPE_REQUIRES(mutex_);
  void work();

  const unsigned most_threads_;
  const std::size_t budget_;
  mutex mutex_;
  condition_variable added_;
  std::map<std::uintptr_t, populated_range> ranges_ HPE_GUARDED_BY(mutex_);  // by address
  std::size_t begun_ HPE_GUARDED_BY(mutex_) = 0;                             // the sum of `begun` of all ranges
  unsigned threads_ HPE_GUARDED_BY(mutex_) = 0;
};

}  // namespace hpe::device::soft
