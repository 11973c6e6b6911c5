#pragma once

/// Threads that make the pages of new device memory beside the compute units. Page faults make small
/// pages, at a tenth of the rate at which these threads make huge ones.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "runtime/base/thread_safety.h"

namespace hpe::device::soft {

/// Thread-safe. Lives as long as the process.
class page_maker {
 public:
  /// threads: the most that work at the same time; 0: page faults make all pages. budget: the most bytes made of all
  /// ranges that are there.
  page_maker(unsigned threads, std::size_t budget) : most_threads_(threads), budget_(budget) {}

  /// Adds a range that was mapped. Small ones are left to page faults.
  void add(std::uintptr_t address, std::size_t bytes);
  /// Removes the ranges in a range that is about to be unmapped. Pages may still be made there for a moment, which does
  /// no harm: no page is made where nothing is mapped, and pages of new mappings are zero.
  void remove(std::uintptr_t address, std::size_t bytes);

 private:
  struct range {
    std::size_t bytes;
    std::size_t begun;  // bytes that are made, or are being made
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
  std::size_t begun_ HPE_GUARDED_BY(mutex_) = 0;                   // of all ranges
  unsigned threads_ HPE_GUARDED_BY(mutex_) = 0;
};

}  // namespace hpe::device::soft
