#include "runtime/core/backing.h"

#include "runtime/base/error.h"
#include "runtime/base/granule.h"

namespace hpe::core {

using coherence::region_description;
using coherence::region_kind;

std::uint64_t backing::end_of_home(const region_description& what, std::uint64_t at) {
  const std::uint64_t end = round_up(what.bytes, granule_size);
  if (what.homes.size() == 1) return end;
  const std::uint16_t home = what.homes[at / granule_size];
  while (at < end && what.homes[at / granule_size] == home) at += granule_size;
  return at;
}

device::device& backing::home_of(const region_description& what, std::uint64_t at) const {
  return devices_.at(what.homes[what.homes.size() == 1 ? 0 : at / granule_size]);
}

void backing::give(const region_description& what) {
  if (what.kind == region_kind::host) {
    devices_.register_host(what.base, what.extent, space_.shadow_file(),
                           static_cast<std::int64_t>(space_.offset(what.base)));
    return;
  }
  std::uint64_t at = 0;
  try {
    while (at < what.bytes) {
      const std::uint64_t stop = end_of_home(what, at);
      home_of(what, at).map(what.base + at, stop - at);
      at = stop;
    }
  } catch (...) {
    take_until(what, at);
    throw;
  }
}

void backing::take(const region_description& what) noexcept {
  if (what.kind == region_kind::host) return devices_.unregister_host(what.base, what.extent);
  take_until(what, what.bytes);
}

void backing::take_until(const region_description& what, std::uint64_t end) noexcept {
  for (std::uint64_t at = 0; at < end;) {
    const std::uint64_t stop = end_of_home(what, at);
    try {
      home_of(what, at).unmap(what.base + at, stop - at);
    } catch (const error&) {  // NOLINT(bugprone-empty-catch): a lost device has no memory to give back
    }
    at = stop;
  }
}

}  // namespace hpe::core
