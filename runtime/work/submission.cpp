#include "runtime/work/submission.h"

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"
#include "runtime/trace/profile.h"
#include "runtime/work/host_spill.h"

// Invariants:
//  - Several regions are locked only here and in piece_mover, in the order of their numbers, so threads that queue work
//    on the same regions cannot deadlock.
//  - Views are closed before the work is queued; states change afterwards. A view may always be more closed than the
//    state allows: the next access opens it.
//  - A block in state host that is overwritten without an upload keeps this state until the part of the work that
//    overwrites it is queued, and this part writes the whole block. So a block is never valid in part on the host and
//    in part at the home.

namespace hpe::work {

using coherence::apply;
using coherence::block_event;
using coherence::block_run;
using coherence::byte_range;
using coherence::region;

namespace {

void note_use(const region& r, byte_range bytes) HPE_REQUIRES(r.mutex) {
  trace::used(r.layout.base, r.layout.bytes, bytes.begin, std::min(bytes.end, r.layout.bytes));
}

}  // namespace

submission::submission(const resources& with, std::vector<device_access> accesses, const preparation& prepare,
                       memory what, bool is_new)
    : with_(with), accesses_(std::move(accesses)) {
  // Pure writes come last: if one access overwrites a block that another access reads, the old bytes are first uploaded
  // for the read.
  const auto is_before = [](const device_access& a, const device_access& b) {
    return a.region->id != b.region->id ? a.region->id < b.region->id : a.mode != HPE_OUT && b.mode == HPE_OUT;
  };
  // Work that may use all regions already lists them in this order.
  if (!std::is_sorted(accesses_.begin(), accesses_.end(), is_before))
    std::sort(accesses_.begin(), accesses_.end(), is_before);
  lock_and_prepare(prepare);
  if (what != memory::as_it_is && is_new) with_.room.note_step(accesses_);
  residency::turn taking_memory;
  const auto allowed = what == memory::needed ? residency::place::device_memory : residency::place::zero_copy_too;
  while (what != memory::as_it_is && !with_.room.has(accesses_, allowed)) {
    locks_.unlock();
    with_.room.bring_in(accesses_, allowed, taking_memory);
    lock_and_prepare(prepare);
  }
  if (what == memory::as_it_is) keep_resident_parts();
  for (const device_access& access : accesses_) release(access);
}

submission::submission(const resources& with, std::vector<device_access> accesses, settled_t)
    : with_(with), accesses_(std::move(accesses)) {
  lock_and_prepare({});
  for (const device_access& access : accesses_) {
    access.region->mutex.assert_held();
    note_use(*access.region, access.range);
  }
}

void submission::lock_and_prepare(const preparation& prepare) {
  std::vector<region*> used;
  used.reserve(accesses_.size());
  for (const device_access& access : accesses_)
    if (used.empty() || used.back() != access.region) used.push_back(access.region);
  locks_.lock(std::move(used));
  // If the program's threads are not synchronised, the object may have been reused for another region.
  const auto gone = [](const device_access& a) HPE_NO_THREAD_SAFETY_ANALYSIS {
    return !a.region->alive || a.range.end > a.region->layout.extent;
  };
  std::erase_if(accesses_, [&](const device_access& a) { return a.if_alive && gone(a); });
  HPE_REQUIRE(std::none_of(accesses_.begin(), accesses_.end(), gone), HPE_ERROR_NOT_A_REGION,
              "an allocation that was to be used was freed by another thread just now");
  if (prepare)
    for (const device_access& access : accesses_) prepare(access);
}

void submission::keep_resident_parts() {
  std::vector<device_access> parts;
  for (const device_access& access : accesses_) {
    region& r = *access.region;
    r.mutex.assert_held();
    if (r.single_copy() || r.resident.covers(access.range)) {
      parts.push_back(access);
      continue;
    }
    HPE_REQUIRE(with_.views.set(r, r.blocks_of(access.range), os::page_protection::none), HPE_ERROR_SYSTEM,
                "mprotect failed for lack of mappings; raise vm.max_map_count");
    device_access part = access;
    for (const coherence::mapped_range& there : r.resident.mapped()) {
      part.range = {std::max(there.range.begin, access.range.begin), std::min(there.range.end, access.range.end)};
      if (!part.range.empty()) parts.push_back(part);
    }
  }
  accesses_ = std::move(parts);
}

bool submission::leaves_all_settled(bool no_zero_copy) const {
  return std::ranges::all_of(accesses_, [&](const device_access& access) {
    access.region->mutex.assert_held();
    return access.region->is_settled(no_zero_copy);
  });
}

void submission::release(const device_access& access) {
  region& r = *access.region;
  r.mutex.assert_held();
  note_use(r, access.range);
  if (r.blocks().off_device() == 0) return;
  // Host memory has one copy. The program itself orders CPU code and concurrent work on this copy; for open memory, it
  // orders CPU code and all work.
  if ((access.concurrent || r.layout.open) && r.ordered_by_program()) return;
  r.writer.released();

  const block_run run = r.blocks_of(access.range);
  const block_run overwritten = access.mode == HPE_OUT ? r.blocks_overwritten_by(access.range) : block_run{};
  const auto event_for = [&](std::uint64_t b) HPE_REQUIRES(r.mutex) {
    if (access.mode == HPE_IN) return block_event::device_read;
    const bool whole = b >= overwritten.begin && b < overwritten.end;
    // In a degraded region, several parts may write the one block, so none of them overwrites all of it.
    return whole && !r.degraded ? block_event::device_overwrite : block_event::device_write;
  };
  // Neighbouring blocks with the same state and event are handled together.
  for (std::uint64_t b = run.begin; b < run.end && !r.degraded;) {
    const block_event event = event_for(b);
    std::uint64_t end = b + 1;
    const auto in_memory = [&](std::uint64_t n) HPE_REQUIRES(r.mutex) {
      return host_spill::in_memory(r, r.bytes_of({n, n + 1}));
    };
    const bool there = in_memory(b);
    while (end < run.end && r.state(end) == r.state(b) && event_for(end) == event && in_memory(end) == there) ++end;
    release_run(r, {b, end}, event);
    b = end;
  }
  if (r.degraded) release_run(r, {0, 1}, event_for(0));
  if (access.rows == nullptr || r.degraded || r.single_copy()) return;
  access.region->mutex.assert_held();  // the same mutex, by the name that Clang compares
  const std::vector<timepoint> copies = upload_between_rows(with_, access);
  uploads_.insert(uploads_.end(), copies.begin(), copies.end());
}

void submission::release_run(region& r, block_run run, block_event event) {
  const auto actions = apply(r.state(run.begin), event).actions;
  // Views are closed before an upload reads the shadow, so that no write of the host is lost.
  const auto add = [&](const std::vector<timepoint>& more) {
    uploads_.insert(uploads_.end(), more.begin(), more.end());
  };
  bool mappings_left = true;
  // Only announced work may name data that is in the spill file. The host's copy of this data stays the valid copy,
  // like the copy of data without device memory.
  const bool stays = actions.upload && !with_.host.hold(r, r.bytes_of(run), host_spill::shadow_use::read);
  if (actions.close || stays) mappings_left = with_.views.set(r, run, os::page_protection::none);
  if (stays && mappings_left) return;
  if (actions.open_read) mappings_left = with_.views.set(r, run, os::page_protection::read);
  if (!mappings_left) {
    std::erase_if(pending_, [&](const pending_change& c) { return c.region == &r; });
    return add(degrade_to_homes(with_, r));
  }
  r.set_rolled(run, false);
  if (actions.upload) add(upload(with_, r, run, device::priority::launch));
  if (apply(r.state(run.begin), event).next != r.state(run.begin)) pending_.push_back({&r, run, event});
}

void submission::queued(std::span<const device_access> part, std::span<const timepoint> points) noexcept {
  if (!points.empty()) record(part, points, with_.devices);
  for (const device_access& access : part) {
    access.region->mutex.assert_held();
    if (access.mode != HPE_IN) access.region->note_write();
    const block_run used = access.region->blocks_of(access.range);
    for (const pending_change& c : pending_) {
      if (c.region != access.region) continue;
      const block_run both{std::max(used.begin, c.run.begin), std::min(used.end, c.run.end)};
      if (both.begin < both.end) access.region->transition(both, c.event);
    }
  }
}

void submission::abandon() noexcept {
  // An eviction's earlier copy lacks the bytes that the parts of the failed work wrote. The region's order does not
  // record these writes, so the copy must be marked as outdated here.
  for (const device_access& access : accesses_) {
    access.region->mutex.assert_held();
    if (access.mode != HPE_IN) access.region->resident.outdate(access.range);
  }
  for (const pending_change& c : pending_) {
    c.region->mutex.assert_held();
    if (c.event != block_event::device_read) c.region->transition(c.run, block_event::abandoned);
  }
  pending_.clear();
}

}  // namespace hpe::work
