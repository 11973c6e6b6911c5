#include "runtime/memory/segment_allocator.h"

#include <algorithm>
#include <new>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"
#include "runtime/base/log.h"

// Invariants: the free extents do not overlap, and no two are adjacent. Next fit: the search for a free range starts at
// the end of the last allocated range. It starts again at the beginning of the segment only if no free range after that
// end is long enough.

namespace hpe::memory {

segment_allocator::segment_allocator(std::byte* begin, std::size_t granules)
    : begin_(begin), end_(begin + granules * granule_size), next_(begin) {
  if (granules != 0) free_.insert(begin_, end_, {});
}

std::byte* segment_allocator::allocate(std::size_t granules) {
  HPE_INVARIANT(granules != 0);
  const lock_guard lock(mutex_);
  const std::size_t bytes = granules * granule_size;
  const auto take = [&](std::byte* address) HPE_REQUIRES(mutex_) {
    free_.erase(address, address + bytes);
    next_ = address + bytes;
    return address;
  };

  // If an extent contains next_, only its part from next_ on is searched.
  for (auto e = free_.from(next_); e != free_.end(); ++e) {
    std::byte* const from = std::max(e->first, next_);
    if (static_cast<std::size_t>(e->second.end - from) >= bytes) return take(from);
  }
  for (const auto& [begin, extent] : free_)
    if (static_cast<std::size_t>(extent.end - begin) >= bytes) return take(begin);
  return nullptr;
}

bool segment_allocator::allocate_at(std::byte* address, std::size_t granules) {
  const lock_guard lock(mutex_);
  std::byte* const end = address + granules * granule_size;
  const auto e = free_.find(address);
  if (e == free_.end() || e->second.end < end) return false;
  free_.erase(address, end);
  return true;
}

void segment_allocator::free(std::byte* address, std::size_t granules) {
  const lock_guard lock(mutex_);
  std::byte* end = address + granules * granule_size;
  HPE_INVARIANT(address >= begin_ && end <= end_ && static_cast<std::size_t>(address - begin_) % granule_size == 0);

  HPE_INVARIANT(!free_.overlaps(address, end));
  try {
    if (granules != 0) free_.insert_merged(address, end, {});
  } catch (const std::bad_alloc&) {
    log(log_level::error,
        "hpe can no longer use the {} bytes of address space at {}: there is no memory left to record them",
        end - address, static_cast<void*>(address));
  }
}

std::size_t segment_allocator::free_granules() const {
  const lock_guard lock(mutex_);
  std::size_t total = 0;
  for (const auto& [begin, extent] : free_) total += static_cast<std::size_t>(extent.end - begin) / granule_size;
  return total;
}

}  // namespace hpe::memory
