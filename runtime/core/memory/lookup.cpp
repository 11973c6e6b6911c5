// The search for the allocation at an address, and the errors for an address that lies in no allocation.

#include "runtime/base/error.h"
#include "runtime/core/memory/allocator.h"
#include "runtime/fault/explain.h"

namespace hpe::core {

using coherence::region;

allocation allocator::find(const void* p) const {
  const memory::granule_entry entry = granules_.find(p);
  if (entry.region == 0) return {};
  region& r = regions_.at(entry.region);
  const lock_guard lock(r.mutex);
  if (!r.alive || !r.contains(p)) return {};
  if (r.layout.small == nullptr) {
    const std::uint64_t offset = r.offset_of(p);
    if (offset < r.layout.first || offset >= r.layout.bytes) return {};
    return {&r, r.layout.base + r.layout.first, r.layout.bytes - r.layout.first};
  }
  const auto object = r.layout.small->find(p);
  return object ? allocation{&r, object->base, object->size} : allocation{};
}

bool allocator::is_in_space(const void* p) const noexcept { return space_.contains(p); }

allocation allocator::require(const void* p) const {
  const allocation found = find(p);
  if (found.region != nullptr) return found;
  HPE_REQUIRE(space_.contains(p), HPE_ERROR_NOT_A_REGION, "{} is not an address that hpe gave out", p);
  HPE_THROW(HPE_ERROR_NOT_A_REGION, "{} lies in no allocation: {}", p,
            fault::explain_stray_address(static_cast<const std::byte*>(p), granules_, regions_));
}

allocation allocator::require(const void* p, std::size_t bytes) const {
  const allocation found = require(p);
  const std::uint64_t offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(p) - found.base);
  HPE_REQUIRE(bytes <= found.bytes - offset, HPE_ERROR_NOT_A_REGION,
              "{} bytes at {} reach {} bytes past the end of the allocation of {} bytes at {}", bytes, p,
              bytes - (found.bytes - offset), found.bytes, static_cast<void*>(found.base));
  if (found.region->layout.mapped) files_.require_mapped(*found.region, {offset, offset + bytes});
  return found;
}

}  // namespace hpe::core
