#include "runtime/core/memory/mover.h"

#include <algorithm>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"

namespace hpe::core {

using coherence::region;
using coherence::region_layout;

void mover::move(region& r, unsigned device) {
  HPE_REQUIRE(!with_.devices.at(device).lost(), HPE_ERROR_DEVICE_LOST, "device {} is lost and takes no memory", device);
  if (r.layout.homes.size() == 1 && r.layout.homes[0] == device) return;
  HPE_REQUIRE(r.exports.empty() && !others_.is_open(r.shared), HPE_ERROR_NOT_SUPPORTED,
              "the allocation at {} is used by other processes (hpeExportBegin) and stays where it is",
              static_cast<void*>(r.layout.base));
  const std::size_t free = with_.devices.at(device).memory().free;
  const std::uint64_t granules = round_up(r.layout.bytes, granule_size) / granule_size;
  const std::uint64_t there = std::count(r.layout.homes.begin(), r.layout.homes.end(), device);
  const std::uint64_t needed = (granules - there) * granule_size;
  HPE_REQUIRE(needed <= free, HPE_ERROR_OUT_OF_MEMORY,
              "device {} has {} bytes free and cannot take the {} bytes of the allocation at {} that it does not have",
              device, free, needed, static_cast<void*>(r.layout.base));

  work::bring_to_host(with_, r);
  region_layout moved = r.layout;
  moved.homes = {static_cast<std::uint16_t>(device)};
  if (r.shared != 0) others_.retire(std::exchange(r.shared, 0), [] {});
  backing_.take(r.layout);
  try {
    backing_.give(moved);
  } catch (...) {
    // Another thread has taken the free memory. All bytes are safe in the shadow; the old homes are mapped again.
    backing_.give_back(r.layout);
    throw;
  }
  r.set_homes(std::move(moved.homes));
  granules_.set_home(r.layout.base, granules, static_cast<std::uint16_t>(device));
  counters::add(count_.migrations, 1);
}

}  // namespace hpe::core
