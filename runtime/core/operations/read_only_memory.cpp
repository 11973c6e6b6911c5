#include "runtime/core/operations/read_only_memory.h"

#include <algorithm>
#include <array>

#include "runtime/base/granule.h"
#include "runtime/work/accesses.h"

namespace hpe::core {

namespace {

using check::declared_range;
using coherence::byte_range;

constexpr std::uint64_t unit = device::fingerprint_unit;

// Returns the ranges that are read, without the bytes that are written.
std::vector<declared_range> only_read(std::span<const declared_range> declared) {
  std::vector<declared_range> result;
  for (const declared_range& each : declared)
    if (!each.writes) result.push_back(each);
  for (const declared_range& written : declared) {
    if (!written.writes) continue;
    std::vector<declared_range> rest;
    for (const declared_range& each : result)
      for (const auto& [begin, end] : {std::pair(each.begin, std::min(each.end, written.begin)),
                                       std::pair(std::max(each.begin, written.end), each.end)})
        if (begin < end) rest.push_back({begin, end, true, false});
    result = std::move(rest);
  }
  return result;
}

}  // namespace

read_only_memory::read_only_memory(device::device_set& devices, work::fingerprints& prints, const allocator& memory,
                                   std::span<const declared_range> declared)
    : devices_(devices), prints_(prints) {
  for (const declared_range& each : only_read(declared)) {
    const auto* const address = reinterpret_cast<const std::byte*>(each.begin);  // NOLINT(performance-no-int-to-ptr)
    coherence::region* const region = memory.find(address).region;
    // Kernels change memory with one copy in place, so its declarations give no wrong results.
    if (region == nullptr || region->single_copy()) continue;
    const std::uint64_t begin = region->offset_of(address);
    const byte_range bytes{begin, begin + (each.end - each.begin)};
    work::wait_for_users({region, bytes}, true, devices_);
    ranges_.push_back({.region = region, .bytes = bytes});
  }
}

// All parts begin and end at multiples of `unit`, except for the bytes before the first and behind the last multiple.
void read_only_memory::divide(range& whole) {
  const std::uint64_t step = round_up(std::max(whole.bytes.size() / most_parts, part_bytes), unit);
  whole.region->for_each_home(whole.bytes, [&](unsigned home, byte_range all) {
    for (std::uint64_t at = all.begin; at < all.end;) {
      std::uint64_t end = std::min(at % unit != 0 ? round_up(at, unit) : at + step, all.end);
      if (end - at > unit) end -= end % unit;
      whole.parts.push_back({.home = home, .bytes = {at, end}});
      at = end;
    }
  });
}

void read_only_memory::begin(coherence::point_set& first) {
  for (range& its : ranges_) {
    its.region->mutex.assert_held();
    divide(its);
    for (part& each : its.parts) {
      each.before = prints_.take(each.home, *its.region, each.bytes);
      if (each.before) first.add(each.before->computed);
    }
  }
}

void read_only_memory::end(timepoint launch) noexcept {
  for (range& its : ranges_) {
    its.region->mutex.assert_held();
    for (part& each : its.parts)
      if (each.before) each.after = prints_.take(each.home, *its.region, each.bytes, launch);
  }
}

std::vector<check::access_range> read_only_memory::changed() const {
  std::vector<check::access_range> result;
  for (const range& its : ranges_) {
    check::access_range found{.how = check::use::write};
    for (const part& each : its.parts) {
      if (!each.after) continue;
      const std::array points{each.before->computed, each.after->computed};
      work::wait_for(points, devices_);
      const auto has_failed = [&](timepoint p) { return devices_.status_of(p).has_value(); };
      if (std::ranges::any_of(points, has_failed) || prints_.are_same(*each.before, *each.after)) continue;
      const auto base = reinterpret_cast<std::uintptr_t>(its.region->layout.base);
      if (found.begin == found.end) found.begin = base + each.bytes.begin;
      found.end = base + each.bytes.end;
    }
    if (found.begin != found.end) result.push_back(found);
  }
  return result;
}

}  // namespace hpe::core
