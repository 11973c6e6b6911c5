#include "runtime/fault/explain.h"

#include <fmt/core.h>

#include <optional>

#include "runtime/base/granule.h"
#include "runtime/memory/small_objects.h"

namespace hpe::fault {

namespace {

struct neighbour {
  const std::byte* base = nullptr;
  std::uint64_t bytes = 0;
  bool freed = false;
};

// Returns the allocation that explains `address`, if it is in the region of the granule that contains `near`.
std::optional<neighbour> find_before(const std::byte* address, const std::byte* near,
                                     const memory::granule_table& granules, const coherence::region_table& regions) {
  const memory::granule_entry entry = granules.find(near);
  if (entry.region == 0) return std::nullopt;
  const coherence::region& r = regions.at(entry.region);
  const lock_guard lock(r.mutex);
  const std::byte* const base = r.layout.base + r.layout.first;
  if (address < base) return std::nullopt;
  if (r.layout.small == nullptr) {
    const neighbour whole{base, r.layout.bytes - r.layout.first, !r.alive};
    // Two kinds of regions explain the address: a freed region that contains the address (hpe still waits for the
    // region's last work), and a live region that ends before the address. A live region that contains the address was
    // made after the access.
    return whole.freed == (address < base + whole.bytes) ? std::optional(whole) : std::nullopt;
  }
  const auto object = r.layout.small->find_before(address);
  if (!object || address < object->base + object->size) return std::nullopt;
  return neighbour{object->base, object->size, false};
}

}  // namespace

std::string explain_stray_address(const std::byte* address, const memory::granule_table& granules,
                                  const coherence::region_table& regions) {
  // If the address is past the end of an allocation, that allocation is in the same granule or in the granule before.
  std::optional<neighbour> found = find_before(address, address, granules, regions);
  if (!found) found = find_before(address, address - granule_size, granules, regions);
  const auto freed = regions.freed_at(address);
  if (freed && (!found || freed->base > found->base)) found = {freed->base, freed->bytes, true};
  if (!found)
    return "the address is in hpe's address space, but neither in an allocation nor in one that was freed recently";
  const auto offset = static_cast<std::uint64_t>(address - found->base);
  const auto* base = static_cast<const void*>(found->base);
  return found->freed
             ? fmt::format("{} bytes inside an allocation of {} bytes at {} that was freed", offset, found->bytes, base)
             : fmt::format("{} bytes past the end of the allocation of {} bytes at {}", offset - found->bytes,
                           found->bytes, base);
}

std::string explain_stray_access(const std::byte* address, bool write, const memory::granule_table& granules,
                                 const coherence::region_table& regions) {
  return fmt::format("invalid {} at {}: {}", write ? "write" : "read", static_cast<const void*>(address),
                     explain_stray_address(address, granules, regions));
}

}  // namespace hpe::fault
