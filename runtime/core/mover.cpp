#include "runtime/core/mover.h"

#include <algorithm>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"

namespace hpe::core {

using coherence::block_state;
using coherence::byte_range;
using coherence::point_set;
using coherence::region;
using coherence::region_description;

void mover::move(region& r, unsigned device) {
  HPE_REQUIRE(!env_.devices.at(device).lost(), HPE_ERROR_DEVICE_LOST, "device {} is lost and takes no memory", device);
  if (r.is.homes.size() == 1 && r.is.homes[0] == device) return;
  HPE_REQUIRE(r.exports.empty() && !others_.is_open(r.shared), HPE_ERROR_NOT_SUPPORTED,
              "the allocation at {} is used by other processes (hpeExportBegin) and stays where it is",
              static_cast<void*>(r.is.base));
  const std::size_t free = env_.devices.at(device).memory().free;
  const std::uint64_t granules = round_up(r.is.bytes, granule_size) / granule_size;
  const std::uint64_t there = std::count(r.is.homes.begin(), r.is.homes.end(), device);
  const std::uint64_t needed = (granules - there) * granule_size;
  HPE_REQUIRE(needed <= free, HPE_ERROR_OUT_OF_MEMORY,
              "device {} has {} bytes free and cannot take the {} bytes of the allocation at {} that it does not have",
              device, free, needed, static_cast<void*>(r.is.base));

  bring_to_host(r);
  region_description moved = r.is;
  moved.homes = {static_cast<std::uint16_t>(device)};
  if (r.shared != 0) others_.retire(std::exchange(r.shared, 0), [] {});
  backing_.take(r.is);
  try {
    backing_.give(moved);
  } catch (const error&) {
    // The room that was free is gone. What was moved to the shadow is safe there; the old home gets it back.
    backing_.give(r.is);
    throw;
  }
  r.set_homes(moved.homes);
  env_.directory.set_home(r.is.base, granules, static_cast<std::uint16_t>(device));
  counters::add(env_.count.migrations, 1);
}

void mover::bring_to_host(region& r) {
  point_set users;
  r.order.before_write(r.whole(), users);
  env_.wait_for(users);
  const auto at_home_only = [&](std::uint64_t b) {
    return r.blocks[b].state == block_state::device || r.blocks[b].state == block_state::fetching;
  };
  point_set copies;
  for (std::uint64_t b = 0; b < r.blocks.size(); ++b) {
    if (!at_home_only(b)) continue;
    const byte_range bytes = r.bytes_of({b, b + 1});
    for (std::uint64_t at = bytes.begin; at < bytes.end;) {
      const std::uint64_t end = r.end_of_home(at, bytes.end);
      copies.add(env_.engine.download(r.home_of(at), r.is.base + at, end - at, {}, device::priority::launch));
      at = end;
    }
  }
  env_.wait_for(copies);
  for (const timepoint p : copies.points())
    if (const auto failure = env_.devices.status_of(p)) throw *failure;
  for (std::uint64_t b = 0; b < r.blocks.size(); ++b)
    if (r.blocks[b].state != block_state::fresh) r.set_state(b, block_state::host);
}

}  // namespace hpe::core
