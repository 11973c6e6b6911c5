#pragma once

#include <cstddef>

#include "runtime/base/interval_map.h"
#include "runtime/base/thread_safety.h"

namespace hpe::memory {

/// Hands out address ranges of one segment, in granules. Manages addresses only and touches no memory. Freed ranges
/// are handed out again as late as possible, so that a use after free is unlikely to meet another region.
/// Thread-safe.
class segment_allocator {
 public:
  /// The segment starts at `begin`, a multiple of the granule.
  segment_allocator(std::byte* begin, std::size_t granules);

  /// Takes a free range and returns its start; nullptr if no range is long enough. granules must not be 0.
  [[nodiscard]] std::byte* allocate(std::size_t granules);

  /// Takes the range that begins at address. Returns false if not all of it is free.
  [[nodiscard]] bool allocate_at(std::byte* address, std::size_t granules);

  /// Frees a range that allocate gave, or a part of one. If memory is too short to record the range, it is never handed
  /// out again, and the log says so.
  void free(std::byte* address, std::size_t granules);

  [[nodiscard]] std::size_t free_granules() const;

 private:
  struct free_space {
    friend bool operator==(free_space, free_space) = default;
  };

  mutable mutex mutex_;
  std::byte* begin_;
  std::byte* end_;
  interval_map<std::byte*, free_space> free_ HPE_GUARDED_BY(mutex_);
  std::byte* next_ HPE_GUARDED_BY(mutex_);  // the end of the last range handed out
};

}  // namespace hpe::memory
