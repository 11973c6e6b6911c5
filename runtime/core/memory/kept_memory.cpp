#include "runtime/core/memory/kept_memory.h"

#include <algorithm>
#include <iterator>

namespace hpe::core {

void kept_memory::keep(const mapping& what) noexcept {
  if (what.extent > limit_ || !put(what)) return drop(what);
  while (const auto too_much = take_first_above(limit_, most_mappings)) drop(*too_much);
}

bool kept_memory::put(const mapping& what) noexcept {
  try {
    // The view cannot be closed if there is no room for another mapping.
    if (!os::protect(what.base, what.extent, os::access::none)) return false;
    const lock_guard lock(mutex_);
    mappings_.push_back(what);
    bytes_ += what.extent;
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

std::optional<kept_memory::mapping> kept_memory::take_first_above(std::uint64_t bytes, std::size_t mappings) noexcept {
  const lock_guard lock(mutex_);
  if (bytes_ <= bytes && mappings_.size() <= mappings) return std::nullopt;
  const mapping first = mappings_.front();
  mappings_.pop_front();
  bytes_ -= first.extent;
  return first;
}

std::optional<std::byte*> kept_memory::take(const memory::segment_allocator& segment, std::uint64_t extent) {
  const lock_guard lock(mutex_);
  const auto found = std::find_if(mappings_.begin(), mappings_.end(),
                                  [&](const mapping& p) { return p.segment == &segment && p.extent == extent; });
  if (found == mappings_.end()) return std::nullopt;
  std::byte* const base = found->base;
  bytes_ -= extent;
  mappings_.erase(found);
  return base;
}

void kept_memory::drop(const mapping& what) noexcept {
  const bool unmapped = space_.unmap_view(what.base, what.extent);
  devices_.release_host(space_.alias(what.base), what.extent);
  if (unmapped) what.segment->free(what.base, what.granules);
}

void kept_memory::clear() noexcept {
  while (const auto kept = take_first_above(0, 0)) drop(*kept);
}

}  // namespace hpe::core
