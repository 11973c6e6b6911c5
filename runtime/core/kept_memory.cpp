#include "runtime/core/kept_memory.h"

#include <algorithm>
#include <iterator>

namespace hpe::core {

void kept_memory::keep(const place& what) {
  // Without room for another mapping the view cannot be closed.
  if (what.extent > limit_ || !os::protect(what.base, what.extent, os::access::none)) return drop(what);
  std::deque<place> too_many;
  {
    const std::lock_guard lock(mutex_);
    places_.push_back(what);
    bytes_ += what.extent;
    while (bytes_ > limit_ || places_.size() > most_places) {
      bytes_ -= places_.front().extent;
      too_many.push_back(places_.front());
      places_.pop_front();
    }
  }
  for (const place& p : too_many) drop(p);
}

std::optional<std::byte*> kept_memory::take(const memory::segment_allocator& segment, std::uint64_t extent) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(places_.begin(), places_.end(),
                                  [&](const place& p) { return p.segment == &segment && p.extent == extent; });
  if (found == places_.end()) return std::nullopt;
  std::byte* const base = found->base;
  bytes_ -= extent;
  places_.erase(found);
  return base;
}

void kept_memory::drop(const place& what) {
  space_.unmap_view(what.base, what.extent);
  devices_.release_host(space_.alias(what.base), what.extent);
  what.segment->free(what.base, what.granules);
}

void kept_memory::clear() {
  std::deque<place> all;
  {
    const std::lock_guard lock(mutex_);
    all.swap(places_);
    bytes_ = 0;
  }
  for (const place& p : all) drop(p);
}

}  // namespace hpe::core
