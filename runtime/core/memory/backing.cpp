#include "runtime/core/memory/backing.h"

#include <algorithm>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"
#include "runtime/base/log.h"
#include "runtime/memory/granule_table.h"

namespace hpe::core {

using coherence::region_kind;
using coherence::region_layout;

namespace {

// One granule after the region stays unused, as after all regions.
std::size_t granules_for(std::uint64_t extent) { return round_up(extent, granule_size) / granule_size + 1; }

}  // namespace

std::uint64_t backing::end_of_home(const region_layout& what, std::uint64_t at, std::uint64_t end) {
  if (what.homes.size() == 1) return end;
  const std::uint16_t home = what.home_of(at);
  while (at < end && what.home_of(at) == home) at += granule_size;
  return at;
}

void backing::map(const region_layout& what, coherence::byte_range range, device::contents first, parts& into) {
  auto [begin, end] = range;
  const unsigned home = what.home_of(begin);
  device::device& device = devices_.at(home);
  constexpr std::uint64_t much = 8;  // a range of at most 1 / much of the free memory is mapped in one piece
  const std::size_t free = device.memory().free;
  const bool whole =
      end - begin <= what.piece_size || (end - begin <= free / much && !host_.limited()) || end - begin > free;
  while (begin < end) {
    const std::uint64_t stop = whole ? end : std::min(end, (begin / what.piece_size + 1) * what.piece_size);
    into.push_back({{begin, stop}, static_cast<std::uint16_t>(home)});
    try {
      device.map(what.base + begin, stop - begin, first);
    } catch (...) {
      into.pop_back();
      throw;
    }
    counters::add(count_.device_memory[home], stop - begin);
    begin = stop;
  }
}

backing::parts backing::give(const region_layout& what) {
  if (what.kind != region_kind::host) return give(what, {0, round_up(what.bytes, granule_size)});
  host_.take(what.extent);
  try {
    devices_.register_host(what.base, what.extent, space_.shadow_file(),
                           static_cast<std::int64_t>(space_.offset(what.base)));
  } catch (...) {
    host_.give_back(what.extent);
    throw;
  }
  return {};
}

backing::parts backing::give(const region_layout& what, coherence::byte_range range, device::contents first) {
  parts mapped;
  try {
    for (std::uint64_t at = range.begin; at < range.end;) {
      const std::uint64_t stop = end_of_home(what, at, range.end);
      map(what, {at, stop}, first, mapped);
      at = stop;
    }
  } catch (...) {
    take(what, mapped);
    throw;
  }
  return mapped;
}

void backing::take(const region_layout& what, const parts& mapped) noexcept {
  if (what.kind == region_kind::host) {
    devices_.unregister_host(what.base, what.extent);
    return host_.give_back(what.extent);
  }
  for (const coherence::mapped_range& part : mapped) {
    devices_.at(part.home).unmap(what.base + part.range.begin, part.range.size());
    counters::subtract(count_.device_memory[part.home], part.range.size());
  }
}

region_layout opened_memory::open(std::span<const device::shared_part> parts, std::uint64_t first, std::uint64_t bytes,
                                  std::uint64_t block_size, std::shared_ptr<const void> lease) {
  region_layout what;
  what.kind = region_kind::host;
  what.homes = {memory::host_home};
  what.first = first;
  what.bytes = first + bytes;
  what.block_size = coherence::choose_block_size(bytes, block_size);
  for (const device::shared_part& part : parts) what.extent += part.bytes;
  what.base = addresses_.allocate(granules_for(what.extent));
  HPE_REQUIRE(what.base != nullptr, HPE_ERROR_OUT_OF_MEMORY,
              "no address space is left for {} bytes of memory of other processes (HPE_SEGMENT_SIZE)", what.extent);
  std::vector<std::uint64_t> done;
  try {
    done.reserve(parts.size());
    std::byte* at = what.base;
    for (const device::shared_part& part : parts) {
      devices_.register_host(at, part.bytes, part.file, static_cast<std::int64_t>(part.offset));
      done.push_back(part.bytes);
      space_.map_foreign(at, part.bytes, part.file, part.offset);
      at += part.bytes;
    }
    const lock_guard lock(mutex_);
    open_[what.base] = {done, std::move(lease)};
  } catch (...) {
    unmap(what, done);
    throw;
  }
  return what;
}

void opened_memory::unmap(const region_layout& what, std::span<const std::uint64_t> sizes) noexcept {
  bool unmapped = true;
  std::byte* at = what.base;
  for (const std::uint64_t bytes : sizes) {
    devices_.unregister_host(at, bytes);
    unmapped = space_.unmap_foreign(at, bytes) && unmapped;
    at += bytes;
  }
  if (unmapped) addresses_.free(what.base, granules_for(what.extent));
}

void opened_memory::close(const region_layout& what) noexcept {
  decltype(open_)::node_type closed;
  {
    const lock_guard lock(mutex_);
    closed = open_.extract(what.base);
  }
  unmap(what, closed.mapped().sizes);
}

}  // namespace hpe::core
