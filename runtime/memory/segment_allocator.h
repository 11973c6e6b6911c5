#pragma once

#include <cstddef>

#include "runtime/base/interval_map.h"
#include "runtime/base/thread_safety.h"

namespace hpe::memory {

/// Allocates address ranges of one segment, in granules. Only manages addresses; does not touch memory. Freed ranges
/// are allocated again as late as possible, so that a use after free is unlikely to hit another region. Thread-safe.
class segment_allocator {
 public:
  /// The segment starts at `begin`, a multiple of the granule.
  segment_allocator(std::byte* begin, std::size_t granules);

  /// Allocates a free range and returns its start; nullptr if no range is long enough. `granules` must not be 0.
  [[nodiscard]] std::byte* allocate(std::size_t granules);

  /// Allocates the range that begins at `address`. Returns false if the range is not entirely free.
  [[nodiscard]] bool allocate_at(std::byte* address, std::size_t granules);

  /// Frees a range that allocate() or allocate_at() allocated, or a part of such a range. If there is no memory to
  /// record the range, the range is never allocated again, and a message in the log says so.
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
  std::byte* next_ HPE_GUARDED_BY(mutex_);  // the end of the last allocated range
};

}  // namespace hpe::memory
