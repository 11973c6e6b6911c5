#pragma once

/// Threads that allocate the pages of new device memory while the compute units run. Page faults allocate small pages,
/// at a tenth of the rate at which these threads allocate huge pages.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "runtime/base/thread_safety.h"

namespace hpe::device::soft {

/// Thread-safe. The object exists until the process ends.
class page_maker {
 public:
  /// `threads`: the largest number of threads that work at the same time; if it is 0, page faults make all pages.
  /// `budget`: the largest number of bytes of pages that the threads make in all current ranges together.
  page_maker(unsigned threads, std::size_t budget) : most_threads_(threads), budget_(budget) {}

  /// Adds a range that was mapped. The pages of small ranges are left to page faults.
  void add(std::uintptr_t address, std::size_t bytes);
  /// Removes all ranges inside a range that is about to be unmapped. The threads may still make pages there for a
  /// moment. That is harmless: no page is made where nothing is mapped, and pages of new mappings are zero.
  void remove(std::uintptr_t address, std::size_t bytes);

 private:
  struct range {
    std::size_t bytes;
    std::size_t begun;  // bytes whose pages are made, or are being made
  };
  struct piece {
    std::uintptr_t address;
    std::size_t bytes;
  };

  [[nodiscard]] std::optional<piece> next() HPE_REQUIRES(mutex_);
  void work();

  const unsigned most_threads_;
  const std::size_t budget_;
  mutex mutex_;
  condition_variable added_;
  std::map<std::uintptr_t, range> ranges_ HPE_GUARDED_BY(mutex_);  // by address
  std::size_t begun_ HPE_GUARDED_BY(mutex_) = 0;                   // the sum of `begun` of all ranges
  unsigned threads_ HPE_GUARDED_BY(mutex_) = 0;
};

}  // namespace hpe::device::soft
