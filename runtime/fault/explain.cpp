#include "runtime/fault/explain.h"

#include <fmt/core.h>

#include "runtime/base/granule.h"

namespace hpe::fault {

std::string explain_stray_access(const std::byte* address, bool write, const memory::directory& directory,
                                 const coherence::region_table& regions) {
  const std::string access =
      fmt::format("invalid {} at {}", write ? "write" : "read", static_cast<const void*>(address));

  // Past an end: the allocation is in the same granule, or in the one before.
  for (const std::byte* near : {address, address - granule_size}) {
    const memory::granule_entry entry = directory.find(near);
    if (entry.region == 0) continue;
    const coherence::region& r = regions.at(entry.region);
    const std::lock_guard lock(r.mutex);
    if (!r.alive || address < r.is.base) continue;
    return fmt::format("{}: {} bytes past the end of the allocation of {} bytes at {}", access,
                       static_cast<std::uint64_t>(address - r.is.base) - r.is.bytes, r.is.bytes,
                       static_cast<const void*>(r.is.base));
  }
  if (const auto freed = regions.freed_at(address))
    return fmt::format("{}: {} bytes inside an allocation of {} bytes at {} that was freed", access,
                       address - freed->base, freed->bytes, static_cast<const void*>(freed->base));
  return fmt::format("{}: the address belongs to hpe, but no allocation is or was there", access);
}

}  // namespace hpe::fault
