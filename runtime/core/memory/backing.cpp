#include "runtime/core/memory/backing.h"

#include <algorithm>
#include <iterator>
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
    if (part.zero_copy)
      host_.give_back(part.range.size());
    else
      counters::subtract(count_.device_memory[part.home], part.range.size());
  }
}

void backing::give_behind(region_layout& what) {
  constexpr std::uint64_t enough = std::uint64_t{1} << 20;
  const std::uint64_t end = round_up(what.bytes, granule_size);
  if (end - what.bytes >= enough) return;
  try {
    devices_.at(what.homes.back())
        .map(what.base + end, granule_size, device::contents::any, device::backing_kind::common);
    what.behind = what.homes.back();
  } catch (const error& e) {
    log(log_level::debug, "no memory is mapped behind the {} bytes at {}: {}", what.bytes,
        static_cast<void*>(what.base), e.what());
  }
}

void backing::take_behind(const region_layout& what) noexcept {
  if (what.behind) devices_.at(*what.behind).unmap(what.base + round_up(what.bytes, granule_size), granule_size);
}

region_layout opened_memory::new_layout(std::uint64_t first, std::uint64_t bytes, std::uint64_t extent,
                                        std::uint64_t block_size) {
  region_layout what;
  what.kind = region_kind::host;
  what.homes = {memory::host_home};
  what.first = first;
  what.bytes = first + bytes;
  what.block_size = block_size;
  what.extent = extent;
  what.base = addresses_.allocate(granules_for(extent));
  HPE_REQUIRE(what.base != nullptr, HPE_ERROR_OUT_OF_MEMORY,
              "no address space is left for {} bytes of mapped files or memory of other processes (HPE_SEGMENT_SIZE)",
              extent);
  try {
    const lock_guard lock(mutex_);
    open_[what.base];
  } catch (...) {
    addresses_.free(what.base, granules_for(extent));
    throw;
  }
  return what;
}

void opened_memory::map(std::byte* address, std::uint64_t bytes, int file, std::uint64_t offset) {
  devices_.register_host(address, bytes, file, static_cast<std::int64_t>(offset));
  try {
    space_.map_foreign(address, bytes, file, offset);
  } catch (...) {
    unmap(address, bytes);
    throw;
  }
}

bool opened_memory::unmap(std::byte* address, std::uint64_t bytes) noexcept {
  devices_.unregister_host(address, bytes);
  return space_.unmap_foreign(address, bytes);
}

region_layout opened_memory::open(std::span<const device::shared_part> parts, std::uint64_t first, std::uint64_t bytes,
                                  std::uint64_t block_size, std::shared_ptr<const void> lease) {
  std::uint64_t extent = 0;
  for (const device::shared_part& part : parts) extent += part.bytes;
  region_layout what = new_layout(first, bytes, extent, coherence::choose_block_size(bytes, block_size));
  try {
    std::uint64_t at = 0;
    for (const device::shared_part& part : parts) {
      add(what, {at, at + part.bytes}, part.file, part.offset);
      at += part.bytes;
    }
  } catch (...) {
    close(what);
    throw;
  }
  const lock_guard lock(mutex_);
  open_.at(what.base).lease = std::move(lease);
  return what;
}

region_layout opened_memory::reserve(std::uint64_t bytes) {
  region_layout what = new_layout(0, bytes, bytes, granule_size);
  what.mapped = true;
  return what;
}

void opened_memory::add(const region_layout& to, coherence::byte_range range, int file, std::uint64_t offset) {
  const lock_guard lock(mutex_);
  std::map<std::uint64_t, std::uint64_t>& mapped = open_.at(to.base).parts;
  const auto after = mapped.lower_bound(range.begin);
  const bool is_free = (after == mapped.end() || after->first >= range.end) &&
                       (after == mapped.begin() || std::prev(after)->first + std::prev(after)->second <= range.begin);
  HPE_REQUIRE(is_free, HPE_ERROR_INVALID_ARGUMENT,
              "a file is to be mapped to the {} bytes at {}, but a file is mapped in this range already", range.size(),
              static_cast<void*>(to.base + range.begin));
  const auto made = mapped.emplace(range.begin, range.size()).first;
  try {
    map(to.base + range.begin, range.size(), file, offset);
  } catch (...) {
    mapped.erase(made);
    throw;
  }
}

void opened_memory::require_whole(const region_layout& what, coherence::byte_range range) const {
  const lock_guard lock(mutex_);
  const auto& parts = open_.at(what.base).parts;
  for (std::uint64_t at = range.begin; at < range.end;) {
    const auto part = parts.find(at);
    HPE_REQUIRE(part != parts.end() && part->second <= range.end - at, HPE_ERROR_INVALID_ARGUMENT,
                "files are to be unmapped from {} bytes, but these bytes do not consist of whole mappings",
                range.size());
    at += part->second;
  }
}

void opened_memory::remove(const region_layout& from, coherence::byte_range range) {
  const lock_guard lock(mutex_);
  opened& memory = open_.at(from.base);
  for (auto part = memory.parts.find(range.begin); part != memory.parts.end() && part->first < range.end;) {
    if (!unmap(from.base + part->first, part->second)) memory.leaks = true;
    part = memory.parts.erase(part);
  }
}

void opened_memory::close(const region_layout& what) noexcept {
  decltype(open_)::node_type closed;
  {
    const lock_guard lock(mutex_);
    closed = open_.extract(what.base);
  }
  bool released = !closed.mapped().leaks;
  for (const auto& [offset, bytes] : closed.mapped().parts) released = unmap(what.base + offset, bytes) && released;
  if (released) addresses_.free(what.base, granules_for(what.extent));
}

}  // namespace hpe::core
