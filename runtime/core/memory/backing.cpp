#include "runtime/core/memory/backing.h"

#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"
#include "runtime/base/log.h"
#include "runtime/memory/granule_table.h"

namespace hpe::core {

using coherence::region_kind;
using coherence::region_layout;

namespace {

// The granule behind it stays unused, as behind all regions.
std::size_t granules_for(std::uint64_t extent) { return round_up(extent, granule_size) / granule_size + 1; }

}  // namespace

std::uint64_t backing::end_of_home(const region_layout& what, std::uint64_t at) {
  const std::uint64_t end = round_up(what.bytes, granule_size);
  if (what.homes.size() == 1) return end;
  const std::uint16_t home = what.homes[at / granule_size];
  while (at < end && what.homes[at / granule_size] == home) at += granule_size;
  return at;
}

unsigned backing::home_of(const region_layout& what, std::uint64_t at) {
  return what.homes[what.homes.size() == 1 ? 0 : at / granule_size];
}

void backing::map(const region_layout& what, std::uint64_t begin, std::uint64_t end) {
  const unsigned home = home_of(what, begin);
  devices_.at(home).map(what.base + begin, end - begin);
  counters::add(count_.device_memory[home], end - begin);
}

void backing::give(const region_layout& what) {
  if (what.kind == region_kind::host) {
    devices_.register_host(what.base, what.extent, space_.shadow_file(),
                           static_cast<std::int64_t>(space_.offset(what.base)));
    return;
  }
  std::uint64_t at = 0;
  try {
    while (at < what.bytes) {
      const std::uint64_t stop = end_of_home(what, at);
      map(what, at, stop);
      at = stop;
    }
  } catch (...) {
    take_until(what, at);
    throw;
  }
}

void backing::give_back(const region_layout& what) noexcept {
  for (std::uint64_t at = 0; at < what.bytes;) {
    const std::uint64_t stop = end_of_home(what, at);
    try {
      try_twice([&] { map(what, at, stop); });
    } catch (const std::exception& e) {
      log(log_level::error, "no device memory is behind {} bytes at {} any more, of which the host has a copy: {}",
          stop - at, static_cast<void*>(what.base + at), e.what());
    }
    at = stop;
  }
}

void backing::take(const region_layout& what) noexcept {
  if (what.kind != region_kind::host) return take_until(what, what.bytes);
  devices_.unregister_host(what.base, what.extent);
}

void backing::take_until(const region_layout& what, std::uint64_t end) noexcept {
  for (std::uint64_t at = 0; at < end;) {
    const std::uint64_t stop = end_of_home(what, at);
    const unsigned home = home_of(what, at);
    devices_.at(home).unmap(what.base + at, stop - at);
    counters::subtract(count_.device_memory[home], stop - at);
    at = stop;
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
              "no {} bytes of address space are left for memory of other processes (HPE_SEGMENT_SIZE)", what.extent);
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
