#include "runtime/core/device_work.h"

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/trace/profile.h"

// Regions are locked in the order of their numbers, here and nowhere else more than one at a time, so threads that
// queue work on the same regions cannot wait for each other in a circle.

namespace hpe::core {

using coherence::apply;
using coherence::block_event;
using coherence::block_run;
using coherence::block_state;
using coherence::byte_range;
using coherence::point_set;
using coherence::region;

device_work::device_work(const environment& env, std::vector<device_access> accesses, const preparation& prepare)
    : env_(env), accesses_(std::move(accesses)) {
  // Pure writes last: a block that one access overwrites and another one reads must have its old bytes.
  std::sort(accesses_.begin(), accesses_.end(), [](const device_access& a, const device_access& b) {
    return a.region->id != b.region->id ? a.region->id < b.region->id : a.mode != HPE_OUT && b.mode == HPE_OUT;
  });
  lock_regions();
  try {
    if (prepare)
      for (const device_access& access : accesses_) prepare(access);
    for (const device_access& access : accesses_) release(access);
  } catch (...) {
    roll_back();
    unlock_regions();
    throw;
  }
}

device_work::~device_work() {
  roll_back();
  unlock_regions();
}

void device_work::lock_regions() {
  for (const device_access& access : accesses_)
    if (regions_.empty() || regions_.back() != access.region) regions_.push_back(access.region);
  for (region* r : regions_) r->mutex.lock();
  // The object may have become another region's, which threads that do not order themselves can make happen.
  const auto gone = [](const device_access& a) { return !a.region->alive || a.range.end > a.region->is.extent; };
  std::erase_if(accesses_, [&](const device_access& a) { return a.if_alive && gone(a); });
  if (std::none_of(accesses_.begin(), accesses_.end(), gone)) return;
  unlock_regions();
  HPE_THROW(HPE_ERROR_NOT_A_REGION, "an allocation that was to be used was freed by another thread just now");
}

void device_work::unlock_regions() noexcept {
  for (region* r : regions_) r->mutex.unlock();
  regions_.clear();
}

void device_work::release(const device_access& access) {
  region& r = *access.region;
  if (r.off_device == 0) return;
  // Of host memory there is one copy, and its order with CPU code is left to the program.
  if (access.concurrent && r.single_copy()) return;
  r.writer.released();

  const block_run run = r.blocks_of(access.range);
  const auto event_for = [&](std::uint64_t b) {
    if (access.mode == HPE_IN) return block_event::device_read;
    const byte_range bytes = r.bytes_of({b, b + 1});
    const bool whole = bytes.begin >= access.range.begin && std::min(bytes.end, r.is.bytes) <= access.range.end;
    return access.mode == HPE_OUT && whole ? block_event::device_overwrite : block_event::device_write;
  };
  // Neighbours in the same state with the same event are handled together.
  for (std::uint64_t b = run.begin; b < run.end && !r.degraded;) {
    const block_event event = event_for(b);
    std::uint64_t end = b + 1;
    while (end < run.end && r.blocks[end].state == r.blocks[b].state && event_for(end) == event) ++end;
    release_run(r, {b, end}, event);
    b = end;
  }
  if (r.degraded && !r.blocks.empty()) release_run(r, {0, 1}, event_for(0));
}

void device_work::release_run(region& r, block_run run, block_event event) {
  const auto [next, actions] = apply(r.blocks[run.begin].state, event);
  // Views are closed before an upload reads the shadow, so that no write of the host is lost.
  bool mappings_left = true;
  if (actions.close) mappings_left = env_.views.set(r, run, os::access::none);
  if (actions.open_read) mappings_left = env_.views.set(r, run, os::access::read);
  if (!mappings_left) return degrade(r);
  const bool written = event != block_event::device_read;
  for (std::uint64_t b = run.begin; b < run.end; ++b) undo_.push_back({&r, b, r.blocks[b].state, written});
  if (actions.upload) upload(r, r.bytes_of(run));
  for (std::uint64_t b = run.begin; b < run.end; ++b) {
    r.set_state(b, next);
    r.blocks[b].rolled = false;
  }
}

void device_work::upload(region& r, byte_range bytes) {
  if (r.single_copy()) return;
  for (std::uint64_t at = bytes.begin; at < bytes.end;) {
    const std::uint64_t end = r.end_of_home(at, bytes.end);
    point_set after;
    r.order.before_write({at, end}, after);
    const timepoint done =
        env_.engine.upload(r.home_of(at), r.is.base + at, end - at, after.points(), device::priority::launch);
    r.order.record_write({at, end}, done);
    trace::moved(r.is.base, r.is.bytes, end - at, true);
    at = end;
  }
}

void device_work::degrade(region& r) {
  // Mappings ran out. Everything the host has goes home, and the region is one block that is on the device. All of its
  // view is closed first, which takes no further mapping, so that no write of the host is lost.
  HPE_REQUIRE(env_.views.set(r, {0, r.blocks.size()}, os::access::none), HPE_ERROR_SYSTEM,
              "mprotect of a whole allocation failed for lack of mappings; raise vm.max_map_count");
  for (std::uint64_t b = 0; b < r.blocks.size(); ++b)
    if (r.blocks[b].state == block_state::host) upload(r, r.bytes_of({b, b + 1}));
  std::erase_if(undo_, [&](const change& c) { return c.region == &r; });
  env_.views.degrade(r, block_state::device);
}

void device_work::roll_back() noexcept {
  for (auto c = undo_.rbegin(); c != undo_.rend(); ++c) {
    c->region->set_state(c->block, c->before);
    // A view that stays closed is opened by the next access.
    (void)env_.views.set(*c->region, {c->block, c->block + 1}, os::access::none);
  }
  undo_.clear();
}

void device_work::abandon() noexcept {
  for (change& c : undo_) {
    if (!c.written) continue;
    const bool on_host = c.before == block_state::shared || c.before == block_state::host;
    c.before = on_host ? block_state::host : block_state::device;
  }
}

void device_work::collect(point_set& after) const {
  for (const device_access& access : accesses_) {
    auto& order = access.region->order;
    if (order.crowded()) order.forget([this](timepoint p) { return env_.devices.reached(p); });
    if (access.concurrent) {
      order.before_concurrent(access.range, after);
    } else if (access.mode == HPE_IN) {
      order.before_read(access.range, after);
    } else {
      order.before_write(access.range, after);
    }
  }
}

void device_work::record(std::span<const timepoint> points) {
  for (const device_access& access : accesses_) {
    auto& order = access.region->order;
    if (access.concurrent) {
      for (const timepoint point : points) order.record_concurrent(access.range, point);
    } else if (access.mode == HPE_IN) {
      for (const timepoint point : points) order.record_read(access.range, point);
    } else {
      order.record_writes(access.range, points);
    }
  }
}

}  // namespace hpe::core
