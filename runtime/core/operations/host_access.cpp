#include "runtime/core/operations/host_access.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"
#include "runtime/work/reading.h"

// No mutex is held during a wait for device work. The state of a region may have changed when its mutex is locked
// again, so each turn of a loop checks the state again.

namespace hpe::core {

using coherence::block_state;
using coherence::byte_range;
using coherence::point_set;
using coherence::region;
using work::host_has;
using work::region_range;

namespace {

// The largest number of bytes that one command copies. With commands of this size, other copies can use the link
// between one command and the next.
constexpr std::uint64_t most_of_one_command = std::uint64_t{64} << 20;

bool host_owns(block_state s) noexcept { return s == block_state::host; }

}  // namespace

region_range host_access::locate(const void* p, std::size_t bytes) const {
  const allocation found = memory_.require(p, bytes);
  const std::uint64_t begin = found.region->offset_of(p);
  return {found.region, {begin, begin + bytes}};
}

region_range host_access::resolve(const void* p, std::size_t bytes, host_use use) const {
  const region_range found = locate(p, bytes);
  announced_.wait_before(*found.region, found.range, use != host_use::read);
  return found;
}

std::byte* host_access::in_place(const void* p, std::size_t bytes, host_use use) const {
  const region_range what = use == host_use::read ? resolve(p, bytes, use) : locate(p, bytes);
  const region& r = *what.region;
  if (r.single_copy()) {
    work::wait_for_users(what, use != host_use::read, with_.devices);
    return space_.alias(p);
  }
  // If host memory has a limit, the host's copy may be moved to the spill file at any time.
  if (use != host_use::read || with_.host.limited()) return nullptr;
  const lock_guard lock(what.region->mutex);
  r.mutex.assert_held();
  what.require_alive();
  const auto run = r.blocks_of(what.range);
  for (std::uint64_t b = run.begin; b < run.end; ++b)
    if (!host_has(r.state(b))) return nullptr;
  return space_.alias(p);
}

loan host_access::borrow(const void* p, std::size_t bytes) { return loans_.take(bytes, p); }

void host_access::read(std::byte* into, const void* p, std::size_t bytes, std::span<const host_run> runs) const {
  if (runs.empty()) return;
  const region_range all = resolve(p, bytes, host_use::read);
  if (all.region->single_copy()) {
    work::wait_for_users(all, false, with_.devices);
    for (const host_run& one : runs) std::memcpy(into + one.offset, space_.alias(p) + one.offset, one.bytes);
    return;
  }
  std::vector<timepoint> copies;
  for (const host_run& one : runs) {
    const std::uint64_t begin = all.range.begin + one.offset;
    read_range(into + one.offset, {all.region, {begin, begin + one.bytes}}, copies);
  }
  finish(copies);
}

std::vector<timepoint> host_access::start_read(std::byte* into, const void* p, std::size_t bytes) const {
  std::vector<timepoint> copies;
  const region_range all = resolve(p, bytes, host_use::read);
  if (all.region->single_copy()) {
    work::wait_for_users(all, false, with_.devices);
    std::memcpy(into, space_.alias(p), bytes);
  } else {
    read_range(into, all, copies);
  }
  return copies;
}

bool host_access::reached(std::span<const timepoint> points) const { return work::reached(points, with_.devices); }

void host_access::finish(std::span<const timepoint> points) const {
  // Wait for all copies first: if one copy fails while another is still running, the other would write to memory that
  // the caller has released.
  work::wait_for(points, with_.devices);
  work::require_success(points, with_.devices);
}

void host_access::wait_for_writers(const void* p, std::size_t bytes) const {
  work::wait_for_users(resolve(p, bytes, host_use::read), false, with_.devices);
}

void host_access::wait_for_users(const void* p, std::size_t bytes) const {
  if (bytes == 0) {
    const allocation found = memory_.require(p);
    bytes = static_cast<std::size_t>(found.base + found.bytes - static_cast<const std::byte*>(p));
  }
  work::wait_for_users(resolve(p, bytes, host_use::write), true, with_.devices);
}

void host_access::read_range(std::byte* into, const region_range& from, std::vector<timepoint>& copies) const {
  try {
    queue_reads(into, from, copies);
  } catch (...) {
    work::wait_for(copies, with_.devices);  // the caller may release the memory at `into`
    throw;
  }
}

void host_access::queue_reads(std::byte* into, const region_range& from, std::vector<timepoint>& copies) const {
  for (std::uint64_t at = from.range.begin; at < from.range.end;) {
    std::byte* const to = into + (at - from.range.begin);
    const auto read = [&](unsigned home, const region_range& bytes) -> std::optional<timepoint> {
      copies.reserve(copies.size() + 1);
      return copies.emplace_back(with_.engine.copy_to_host(home, to, bytes.address(), bytes.range.size()));
    };
    const work::read_stretch next = work::read_next(from, at, most_of_one_command, with_, read);
    if (next.missing) {
      with_.host.bring(next.bytes);
      continue;
    }
    if (!next.on_host && !next.queued) {
      work::wait_for(next.writers.points(), with_.devices);  // not in the stream, which other waiting threads share
      continue;
    }
    std::byte* const address = next.bytes.address();
    if (next.on_host)
      with_.engine.copy_on_host(memory_.likely_home(address), to, space_.alias(address), next.bytes.range.size());
    at = next.bytes.range.end;
  }
}

void host_access::write(void* p, loan& from, const std::byte* data, std::size_t bytes) const {
  if (bytes == 0) return;
  const region_range to = resolve(p, bytes, host_use::write);
  region& r = *to.region;
  if (r.single_copy()) {
    work::wait_for_users(to, true, with_.devices);
    std::memcpy(space_.alias(p), data, bytes);
    return;
  }
  const std::uint64_t most = with_.room.most_for_a_copy(r);
  for (std::uint64_t at = to.range.begin; at < to.range.end;) {
    const std::byte* const source = data + (at - to.range.begin);
    std::uint64_t end = 0;
    bool missing = false;
    {
      const lock_guard lock(to.region->mutex);
      r.mutex.assert_held();
      to.require_alive();
      end = work::end_of_same(r, at, std::min(to.range.end, at / granule_size * granule_size + most), host_owns);
      if (host_owns(r.state(r.block_of(at)))) {
        if (with_.host.limited()) end = std::min(end, (at / granule_size + 1) * granule_size);
        missing = !with_.host.hold(r, {at, end}, work::host_spill::shadow_use::write);
      }
      if (host_owns(r.state(r.block_of(at))) && !missing) {
        // The mutex is held, so that no upload starts before all bytes are written.
        std::memcpy(space_.alias(r.layout.base + at), source, end - at);
        at = end;
        continue;
      }
    }
    if (missing) {
      with_.host.bring({&r, {at, end}});
      continue;
    }
    write_home({&r, {at, end}}, from, source);
    at = end;
  }
}

void host_access::write_home(const region_range& to, loan& from, const std::byte* data) const {
  region& r = *to.region;
  work::submission work(with_, {{&r, to.range, HPE_OUT}},
                        [&](const work::device_access&) { to.require_homes(with_.devices); });
  work.submit_by_home(
      [&](unsigned home, byte_range part, const point_set& after) {
        const timepoint copied = with_.engine.copy_from_host(
            home, r.layout.base + part.begin, data + (part.begin - to.range.begin), part.size(), after.points());
        try {
          from.busy_until(copied);
        } catch (const std::bad_alloc&) {
          work::wait_for(std::span(&copied, 1), with_.devices);  // so the loan need not record the copy
        }
        return copied;
      },
      most_of_one_command);
}

void host_access::settle(loan& l) const { work::wait_for(l.busy().points(), with_.devices); }

}  // namespace hpe::core
