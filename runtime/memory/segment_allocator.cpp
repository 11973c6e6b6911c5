#include "runtime/memory/segment_allocator.h"

#include <algorithm>
#include <iterator>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"

// Invariants: the free extents do not overlap, and no two touch each other. Next fit: the search starts where the last
// range ended and comes back to the start of the segment only when nothing behind that place is long enough.

namespace hpe::memory {

segment_allocator::segment_allocator(std::byte* begin, std::size_t granules)
    : begin_(begin), end_(begin + granules * granule_size), next_(begin) {
  if (granules != 0) free_.emplace(begin, granules);
}

std::byte* segment_allocator::allocate(std::size_t granules) {
  HPE_INVARIANT(granules != 0);
  const std::lock_guard lock(mutex_);
  const auto end_of = [](extents::iterator e) { return e->first + e->second * granule_size; };

  // The extent that next_ lies in counts from next_ on.
  auto e = free_.upper_bound(next_);
  if (e != free_.begin() && end_of(std::prev(e)) > next_) --e;
  for (; e != free_.end(); ++e) {
    std::byte* from = std::max(e->first, next_);
    if (static_cast<std::size_t>(end_of(e) - from) / granule_size >= granules) return take(e, from, granules);
  }
  for (e = free_.begin(); e != free_.end(); ++e)
    if (e->second >= granules) return take(e, e->first, granules);
  return nullptr;
}

std::byte* segment_allocator::take(extents::iterator extent, std::byte* address, std::size_t granules) {
  const auto before = static_cast<std::size_t>(address - extent->first) / granule_size;
  const std::size_t behind = extent->second - before - granules;
  next_ = address + granules * granule_size;
  if (behind != 0) free_.emplace(next_, behind);
  if (before != 0)
    extent->second = before;
  else
    free_.erase(extent);
  return address;
}

void segment_allocator::free(std::byte* address, std::size_t granules) {
  const std::lock_guard lock(mutex_);
  std::byte* end = address + granules * granule_size;
  HPE_INVARIANT(address >= begin_ && end <= end_ && static_cast<std::size_t>(address - begin_) % granule_size == 0);

  auto behind = free_.lower_bound(address);
  HPE_INVARIANT(behind == free_.end() || behind->first >= end);
  if (behind != free_.end() && behind->first == end) {
    granules += behind->second;
    behind = free_.erase(behind);
  }
  if (behind != free_.begin()) {
    const auto before = std::prev(behind);
    std::byte* before_end = before->first + before->second * granule_size;
    HPE_INVARIANT(before_end <= address);
    if (before_end == address) {
      before->second += granules;
      return;
    }
  }
  free_.emplace_hint(behind, address, granules);
}

std::size_t segment_allocator::free_granules() const {
  const std::lock_guard lock(mutex_);
  std::size_t total = 0;
  for (const auto& [begin, granules] : free_) total += granules;
  return total;
}

}  // namespace hpe::memory
