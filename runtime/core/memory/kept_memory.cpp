#include "runtime/core/memory/kept_memory.h"

#include <algorithm>

#include "runtime/base/granule.h"

namespace hpe::core {

namespace {

std::size_t granules_of(std::byte* begin, std::byte* end) {
  return static_cast<std::size_t>(end - begin) / granule_size;
}

}  // namespace

void kept_memory::keep(const space& what, contents pages) noexcept {
  if (what.granules * granule_size > limit_ || !put(what, pages)) return drop(what);
  while (const auto too_much = take_above(limit_)) drop(*too_much);
}

bool kept_memory::put(const space& what, contents pages) noexcept {
  const std::uint64_t bytes = what.granules * granule_size;
  if (!memory::uvas::close_view(what.base, bytes)) return false;
  try {
    const lock_guard lock(mutex_);
    kept_[what.segment].insert_merged(what.base, what.base + bytes, pages);
    bytes_ += bytes;
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

std::optional<kept_memory::space> kept_memory::take_above(std::uint64_t bytes) noexcept {
  const lock_guard lock(mutex_);
  if (bytes_ <= bytes) return std::nullopt;
  const auto any = std::find_if(kept_.begin(), kept_.end(), [](const auto& k) { return !k.second.empty(); });
  const auto first = any->second.begin();
  space result{any->first, first->first, granules_of(first->first, first->second.end)};
  const std::size_t too_many = round_up(bytes_ - bytes, granule_size) / granule_size;
  try {
    any->second.erase(result.base, result.base + std::min(result.granules, too_many) * granule_size);
    result.granules = std::min(result.granules, too_many);
  } catch (const std::bad_alloc&) {
    any->second.erase(first);
  }
  bytes_ -= result.granules * granule_size;
  return result;
}

std::optional<kept_memory::taken> kept_memory::take(memory::segment_allocator& segment, std::size_t granules) {
  const lock_guard lock(mutex_);
  const auto its = kept_.find(&segment);
  if (its == kept_.end() || its->second.empty()) return std::nullopt;
  spaces& all = its->second;
  const auto size = [](const auto& kept) { return granules_of(kept.first, kept.second.end); };
  const auto better = [&](const auto& a, const auto& b) {
    const bool enough = size(a) >= granules;
    if (enough != (size(b) >= granules)) return enough;
    return enough ? size(a) < size(b) : size(a) > size(b);
  };
  const auto best = std::min_element(all.begin(), all.end(), better);
  const taken result{best->first, best->second.value};
  const std::size_t kept = std::min(size(*best), granules);
  if (kept < granules && !segment.allocate_at(best->second.end, granules - kept)) return std::nullopt;
  all.erase(result.base, result.base + kept * granule_size);
  bytes_ -= kept * granule_size;
  return result;
}

void kept_memory::drop(const space& what) noexcept {
  const std::uint64_t bytes = what.granules * granule_size;
  const bool unmapped = space_.unmap_view(what.base, bytes);
  devices_.release_host(space_.alias(what.base), bytes);
  if (unmapped) what.segment->free(what.base, what.granules);
}

void kept_memory::clear() noexcept {
  while (const auto kept = take_above(0)) drop(*kept);
}

}  // namespace hpe::core
