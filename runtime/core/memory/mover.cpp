#include "runtime/core/memory/mover.h"

#include <map>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"

namespace hpe::core {

using coherence::region;
using coherence::region_layout;

void mover::move(region& r, std::vector<std::uint16_t> homes) {
  const std::uint64_t granules = round_up(r.layout.bytes, granule_size) / granule_size;
  for (const std::uint16_t device : homes)
    HPE_REQUIRE(!with_.devices.at(device).lost(), HPE_ERROR_DEVICE_LOST,
                "device {} is lost, so memory cannot be moved to it", device);
  region_layout moved = r.layout;
  moved.homes = std::move(homes);
  std::map<std::uint16_t, std::int64_t> more;  // how many more granules each device has after the move than before
  bool differ = false;
  for (std::uint64_t g = 0; g < granules; ++g) {
    const std::uint16_t to = moved.home_of(g * granule_size), from = r.layout.home_of(g * granule_size);
    ++more[to];
    --more[from];
    differ |= to != from;
  }
  if (!differ) return;
  HPE_REQUIRE(!others_.holds(r, r.whole()), HPE_ERROR_NOT_SUPPORTED,
              "the allocation at {} is used by other processes (hpeExportBegin), so it cannot be moved",
              static_cast<void*>(r.layout.base));
  for (const auto& [device, count] : more) {
    if (count <= 0 || oversubscribe_) continue;
    const std::size_t free = with_.devices.at(device).memory().free;
    const std::uint64_t needed = static_cast<std::uint64_t>(count) * granule_size;
    HPE_REQUIRE(needed <= free, HPE_ERROR_OUT_OF_MEMORY,
                "device {} has {} bytes free, but needs {} for the rest of the allocation at {}", device, free, needed,
                static_cast<void*>(r.layout.base));
  }

  others_.forget(with_, r, r.whole());
  if (!direct_.move(r, moved)) move_through_host(r, moved);
  r.set_homes(std::move(moved.homes));
  for (std::uint64_t g = 0; g < granules; ++g)
    granules_.set_home(r.layout.base + g * granule_size, 1, r.layout.home_of(g * granule_size));
  counters::add(count_.migrations, 1);
}

void mover::move_through_host(region& r, const region_layout& moved) {
  work::bring_to_host(with_, r);
  backing_.take(r.layout, r.resident.mapped());
  // All bytes are now in the shadow. If no device memory is free, the bytes stay there until device work needs them.
  r.resident.reset(r.bytes_at_homes());
  try {
    const backing::parts mapped = backing_.give(moved);
    try {
      r.resident.add(mapped);
    } catch (...) {
      r.resident.reset(r.bytes_at_homes());
      backing_.take(moved, mapped);
      throw;
    }
  } catch (const error& e) {
    if (!oversubscribe_ || e.status() != HPE_ERROR_OUT_OF_MEMORY) throw;
  }
}

}  // namespace hpe::core
