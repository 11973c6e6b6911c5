#pragma once

#include <cstddef>

#include "runtime/base/interval_map.h"
#include "runtime/base/thread_safety.h"

namespace hpe::memory {

/// Hands out address ranges of one segment, in granules. It keeps addresses only and touches no memory. Ranges that
/// were freed are handed out again as late as possible, so that a use after the free meets no other region. Every
/// function may be called from any thread.
class segment_allocator {
 public:
  /// The segment starts at `begin`, a multiple of the granule.
  segment_allocator(std::byte* begin, std::size_t granules);

  /// The start of a free range, now taken; nullptr when no range is long enough. granules is not 0.
  [[nodiscard]] std::byte* allocate(std::size_t granules);

  /// Gives back a range that allocate gave, or a part of one. Where memory is too short to remember it, nobody gets the
  /// range any more; the log tells so.
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
  std::byte* next_ HPE_GUARDED_BY(mutex_);  // where the last range handed out ends
};

}  // namespace hpe::memory
