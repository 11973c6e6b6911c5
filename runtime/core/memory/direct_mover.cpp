#include "runtime/core/memory/direct_mover.h"

#include <algorithm>
#include <map>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"
#include "runtime/base/log.h"

namespace hpe::core {

using coherence::block_event;
using coherence::block_state;
using coherence::byte_range;
using coherence::mapped_range;
using coherence::region;
using coherence::region_layout;

/// Device memory for a temporary copy of each range, at addresses that belong to no region.
class direct_mover::temporary_memory {
 public:
  temporary_memory(device::device_set& devices, memory::segment_allocator& addresses)
      : devices_(devices), addresses_(addresses) {}
  temporary_memory(const temporary_memory&) = delete;
  temporary_memory& operator=(const temporary_memory&) = delete;
  ~temporary_memory() {
    for (const moved_range& each : mapped_) devices_.at(each.from).unmap(each.temporary, each.range.size());
    if (base_ != nullptr) addresses_.free(base_, granules_);
  }

  /// Maps memory for the ranges and sets their temporary addresses. Returns false if there is too little device memory
  /// or address space.
  bool map(std::vector<moved_range>& ranges) {
    std::map<std::uint16_t, std::uint64_t> needed;
    for (const moved_range& each : ranges) {
      needed[each.from] += each.range.size();
      granules_ += each.range.size() / granule_size;
    }
    // One granule of each device stays free for other allocations.
    for (const auto& [device, bytes] : needed)
      if (devices_.at(device).memory().free < bytes + granule_size) return false;
    base_ = addresses_.allocate(granules_);
    if (base_ == nullptr) return false;
    mapped_.reserve(ranges.size());
    std::byte* at = base_;
    for (moved_range& each : ranges) {
      each.temporary = at;
      try {
        devices_.at(each.from).map(at, each.range.size(), device::contents::any);
      } catch (const error& e) {
        if (e.status() != HPE_ERROR_OUT_OF_MEMORY) throw;
        return false;
      }
      mapped_.push_back(each);
      at += each.range.size();
    }
    return true;
  }

 private:
  device::device_set& devices_;
  memory::segment_allocator& addresses_;
  std::byte* base_ = nullptr;
  std::size_t granules_ = 0;
  std::vector<moved_range> mapped_;
};

std::vector<direct_mover::moved_range> direct_mover::ranges_to_move(const region& r, const region_layout& moved,
                                                                    backing::parts& leaving) {
  std::vector<moved_range> ranges;
  for (const mapped_range& m : r.resident.mapped()) {
    const std::size_t before = ranges.size();
    bool moves = false;
    for (byte_range part = m.range; part.begin < m.range.end; part.begin = part.end) {
      const std::uint16_t to = moved.home_of(part.begin);
      part.end = part.begin + granule_size;
      while (part.end < m.range.end && moved.home_of(part.end) == to) part.end += granule_size;
      moves |= to != m.home;
      ranges.push_back({part, m.home, to});
    }
    if (moves) {
      leaving.push_back(m);
    } else {
      ranges.resize(before);
    }
  }
  return ranges;
}

bool direct_mover::suits(const std::vector<moved_range>& ranges) const {
  return std::all_of(ranges.begin(), ranges.end(), [&](const moved_range& each) {
    return with_.engine.route_between(each.to, each.from) != transfer::route::peer_staged &&
           (each.to == each.from || pays(with_.devices.at(each.from).info()));
  });
}

void direct_mover::copy(const region& r, const std::vector<moved_range>& ranges, direction way) const {
  std::vector<timepoint> copies;
  copies.reserve(ranges.size());
  try {
    for (const moved_range& each : ranges) {
      std::byte* const bytes = r.layout.base + each.range.begin;
      copies.push_back(way == direction::to_temporary
                           ? with_.engine.copy(each.from, each.temporary, each.from, bytes, each.range.size(), {})
                           : with_.engine.copy(each.to, bytes, each.from, each.temporary, each.range.size(), {}));
    }
  } catch (...) {
    work::wait_for(copies, with_.devices);
    throw;
  }
  work::wait_for(copies, with_.devices);
  work::require_success(copies, with_.devices);
}

coherence::block_run direct_mover::blocks_of(const region& r, const moved_range& each) {
  return r.blocks_of({each.range.begin, std::min(each.range.end, r.layout.extent)});  // ranges are whole granules
}

void direct_mover::bring_to_host(region& r, const std::vector<moved_range>& ranges) const {
  with_.host.bring_all(r);
  std::vector<timepoint> copies;
  copies.reserve(r.blocks().count());
  try {
    for (const moved_range& each : ranges) {
      const coherence::block_run run = blocks_of(r, each);
      for (std::uint64_t b = run.begin; b < run.end; ++b) {
        if (r.state(b) != block_state::device) continue;
        const byte_range bytes = r.bytes_of({b, b + 1});
        copies.push_back(with_.engine.copy_to_host(each.from, space_.alias(r.layout.base + bytes.begin),
                                                   each.temporary + (bytes.begin - each.range.begin), bytes.size()));
      }
    }
  } catch (...) {
    work::wait_for(copies, with_.devices);
    throw;
  }
  work::wait_for(copies, with_.devices);
  work::require_success(copies, with_.devices);
  for (const moved_range& each : ranges) r.transition(blocks_of(r, each), block_event::brought_to_host);
}

bool direct_mover::move(region& r, const region_layout& moved) {
  // Each block is inside one granule, and therefore inside one range.
  if (!r.resident.covers({0, r.bytes_at_homes()}) || r.resident.has_zero_copy(r.whole()) ||
      r.layout.block_size > granule_size || r.degraded)
    return false;
  for (std::uint64_t b = 0; b < r.blocks().count(); ++b)
    if (r.state(b) == block_state::fetching) return false;
  backing::parts leaving;
  std::vector<moved_range> ranges = ranges_to_move(r, moved, leaving);
  if (!suits(ranges)) return false;

  r.unsettle();
  coherence::point_set users;
  r.order.before_write(r.whole(), users);
  work::wait_for(users.points(), with_.devices);
  temporary_memory room(with_.devices, addresses_);
  try {
    if (!room.map(ranges)) return false;
    copy(r, ranges, direction::to_temporary);
  } catch (const error& e) {
    log(log_level::info, "an allocation moves through host memory: {}", e.what());
    return false;
  }

  backing_.take(r.layout, leaving);
  for (const mapped_range& m : leaving) r.resident.remove(m.range.begin);
  try {
    // The copies below overwrite all bytes. But if a copy fails, the bytes of fresh blocks must still be zeros.
    const auto contents_of = [&](const moved_range& each) HPE_NO_THREAD_SAFETY_ANALYSIS {
      const coherence::block_run run = blocks_of(r, each);
      for (std::uint64_t b = run.begin; b < run.end; ++b)
        if (r.state(b) == block_state::fresh) return device::contents::zeros;
      return device::contents::any;
    };
    for (const moved_range& each : ranges) {
      backing::parts mapped = backing_.give(moved, each.range, contents_of(each));
      try {
        for (; !mapped.empty(); mapped.pop_back()) r.resident.add(mapped.back(), 0);
      } catch (...) {
        backing_.take(moved, mapped);
        throw;
      }
    }
    copy(r, ranges, direction::from_temporary);
  } catch (const std::exception& e) {
    log(log_level::info, "an allocation moves through host memory: {}", e.what());
    try_twice([&]() HPE_NO_THREAD_SAFETY_ANALYSIS { bring_to_host(r, ranges); });
    return false;
  }
  return true;
}

}  // namespace hpe::core
