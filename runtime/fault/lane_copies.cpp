// The copies of a lane: fetches, from their start to the opening of the view, and uploads of blocks that CPU code has
// just written. The invariants of lane.cpp hold here.

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"
#include "runtime/base/log.h"
#include "runtime/fault/lane.h"
#include "runtime/trace/profile.h"

namespace hpe::fault {

using coherence::apply;
using coherence::block_event;
using coherence::block_run;
using coherence::block_state;
using coherence::byte_range;
using coherence::region;
using device::priority;

namespace {

// The largest number of bytes of one copy. Copies are limited, so that views open while the rest of a long window is
// still being copied. Copies of 8 MiB use the whole rate of a GPU's link (54.7 of 55.4 GB/s); copies of 2 MiB do not
// (52.7 GB/s).
constexpr std::uint64_t fetch_size = 4 * granule_size;

}  // namespace

void lane::upload_behind(region& r, const std::deque<block_run>& runs) {
  try {
    for (const block_run& run : runs)
      if (!r.degraded) upload_behind(r, run);  // an upload may degrade the region to one block
  } catch (const std::exception& e) {
    // No thread waits for this upload. Device work that needs the data at its home fails for the same reason and
    // reports the failure.
    log(log_level::debug, "upload behind a writer: {}", e.what());
  }
}

void lane::upload_behind(region& r, block_run run) {
  for (std::uint64_t b = run.begin; b < run.end;) {
    const block_run same = r.blocks().same_from(b, run.end);
    b = same.end;
    if (!apply(r.state(same.begin), block_event::flush).actions.upload) continue;
    if (!r.single_copy() && !r.resident.usable(r.bytes_of(same)))
      continue;  // no usable device memory; a launch that needs the blocks maps device memory and uploads the blocks
    if (!env_.host.hold(r, r.bytes_of(same), work::host_memory::shadow_use::read)) continue;
    // Close the view to writers before the copy reads the shadow, so that no write is lost.
    if (!env_.views.set(r, same, os::page_protection::read)) return work::degrade_to_host(env_, r);
    work::upload(env_, r, same, priority::rolling);
    r.set_rolled(same, true);
    counters::add(env_.count.blocks_rolled, same.end - same.begin);
  }
}

bool lane::is_alone(const region& r, std::uint64_t block) {
  const auto at_home = [&](std::uint64_t b) HPE_REQUIRES(r.mutex) { return r.state(b) == block_state::device; };
  return (block == 0 || at_home(block - 1)) && (block + 1 == r.blocks().count() || at_home(block + 1));
}

void lane::refine(region& r) noexcept {
  try {
    const std::uint64_t times = r.refine();
    for (fetch& f : fetches_)
      if (f.region == &r) f.run = {f.run.begin * times, std::min(f.run.end * times, r.blocks().count())};
  } catch (const std::bad_alloc&) {
    log(log_level::debug, "no memory is left to make the blocks of a region smaller");
  }
}

void lane::start_fetches(region& r, block_run run, priority level) {
  run.end = std::min<std::uint64_t>(run.end, r.blocks().count());
  for (std::uint64_t b = run.begin; b < run.end;) {
    if (!apply(r.state(b), block_event::prefetch).actions.fetch) {
      ++b;
      continue;
    }
    const std::uint64_t begin = r.bytes_of({b, b + 1}).begin;
    const std::uint64_t limit = r.end_of_home(begin, begin + std::max(fetch_size, r.layout.block_size));
    std::uint64_t end = b + 1;
    while (end < run.end && r.state(end) == block_state::device && r.bytes_of({end, end + 1}).end <= limit) ++end;
    // If host memory has no space for the shadow of these bytes, neither they nor the rest of the run are fetched.
    if (!env_.host.hold(r, r.bytes_of({b, end}), work::host_memory::shadow_use::write)) return;
    fetches_.push_back({&r, {b, end}, ++last_fetch_, level, {}, {}});
    fetch& f = fetches_.back();
    f.region->mutex.assert_held();
    r.begin_fetch(f.run, block_event::prefetch, f.number);
    b = end;
    if (level == priority::prefetch) counters::add(env_.count.blocks_prefetched, f.run.end - f.run.begin);
    try {
      r.order.before_read(r.bytes_of(f.run), f.after);
      if (reached(f.after.points())) issue(f);
      const bool others_wait = waiting_.size() > 1;
      if (level == priority::waiting_host && f.after.empty() && !r.single_copy() && !others_wait)
        f.apart = env_.views.set_apart(r, f.run);
    } catch (...) {
      r.transition(f.run, block_event::fetch_failed);
      fetches_.pop_back();
      throw;
    }
  }
}

void lane::expect_copies(const region& r, block_run run) {
  // The longer a walk is, the longer it is likely to continue. Allocating pages takes longer than filling them over the
  // link, so pages must be allocated far ahead of the walk. A writer is assumed to have walked twice the length of the
  // run.
  constexpr std::uint64_t times = 4;
  const std::uint64_t walked = std::max(r.reader.walked(run.end), 2 * (run.end - run.begin));
  constexpr std::uint64_t most_bytes = std::uint64_t{256} << 20;
  // The system allocates pages faster in large batches.
  constexpr std::uint64_t unit = std::uint64_t{32} << 20;
  const std::uint64_t begin = run.end * r.layout.block_size;
  const std::uint64_t end = begin + std::min(times * walked * r.layout.block_size, most_bytes);
  const byte_range bytes{begin, std::min(round_up(end, unit), r.layout.extent)};
  const bool any_room = !env_.host.limited();  // otherwise, pages allocated now would count toward the limit
  if (!bytes.empty() && !r.single_copy() && any_room) env_.engine.expect(r.layout.base + bytes.begin, bytes.size());
}

void lane::fetch_ahead(region& r, block_run run) {
  if (run.empty() || kept_closed(r, run, false)) return;
  try {
    expect_copies(r, run);
    start_fetches(r, run, priority::prefetch);
  } catch (const std::exception& e) {
    log(log_level::debug, "prefetch: {}", e.what());
  }
}

void lane::issue(fetch& f) {
  work::download(env_, *f.region, f.run, f.level, f.copies);  // queues no copy for host memory
  f.after.clear();
}

bool lane::owns(const fetch& f, std::uint64_t b) {
  const region& r = *f.region;
  r.mutex.assert_held();
  return r.alive && b < r.blocks().count() && r.blocks().fetched_by(b, f.number);
}

bool lane::advance(fetch& f) noexcept {
  try {
    const bool over = try_to_advance(f);
    if (over) work::host_view::rejoin(f.apart);  // after the answer, so that the thread continues in the meantime
    return over;
  } catch (const std::bad_alloc&) {
    short_of_memory_ = true;
    return false;
  }
}

bool lane::try_to_advance(fetch& f) {
  const bool held = !f.after.empty();
  if (!reached(next_of(f))) return false;

  region& r = *f.region;
  const lock_guard lock(r.mutex);
  f.region->mutex.assert_held();
  if (held) {
    // While the fetch was held, device work may have changed the state of some blocks. The fetch continues with the
    // first contiguous run of its blocks; the blocks after this run are fetched again when a thread touches them.
    while (f.run.begin < f.run.end && !owns(f, f.run.begin)) ++f.run.begin;
    std::uint64_t end = f.run.begin;
    while (end < f.run.end && owns(f, end)) ++end;
    const fetch behind{&r, {end, f.run.end}, f.number, f.level, {}, {}};
    behind.region->mutex.assert_held();
    fail(behind);
    f.run.end = end;
    if (f.run.empty()) return true;
    try {
      issue(f);
    } catch (const error& e) {
      give_up(f, e.what());
      return true;
    }
    if (!reached(f.copies)) return false;
  }
  for (const timepoint p : f.copies) {
    if (const auto failure = env_.devices.status_of(p)) {
      give_up(f, failure->what());
      return true;
    }
  }
  try {
    complete(f);
  } catch (const error& e) {
    log(log_level::error, "opening {} bytes at {}: {}", r.layout.bytes, static_cast<void*>(r.layout.base), e.what());
  }
  return true;
}

void lane::fail(const fetch& f) {
  for (std::uint64_t b = f.run.begin; b < f.run.end; ++b)
    if (owns(f, b)) f.region->transition({b, b + 1}, block_event::fetch_failed);
}

void lane::give_up(const fetch& f, const char* why) {
  region& r = *f.region;
  fail(f);
  std::erase_if(waiting_, [&](request* w) {
    if (!r.contains(w->address())) return false;
    const std::uint64_t b = r.block_of(r.offset_of(w->address()));
    if (b < f.run.begin || b >= f.run.end) return false;
    log(log_level::error, "the data at {} cannot be brought to the host: {}", static_cast<void*>(w->address()), why);
    w->answer(fault_verdict::not_ours);
    return true;
  });
}

bool lane::wanted_for_writing(const region& r, std::uint64_t block) const {
  return std::any_of(waiting_.begin(), waiting_.end(), [&](const request* w) {
    return w->write() && r.contains(w->address()) && r.block_of(r.offset_of(w->address())) == block;
  });
}

void lane::complete(const fetch& f) {
  region& r = *f.region;
  r.mutex.assert_held();
  // Neighbouring blocks with the same protection are protected in one call.
  block_run same;
  os::page_protection allowed = os::page_protection::none;
  bool mappings_left = true;
  const auto open_run = [&] {
    if (allowed != os::page_protection::none) mappings_left = mappings_left && env_.views.set(r, same, allowed);
  };
  for (std::uint64_t b = f.run.begin; b < f.run.end; ++b) {
    if (!owns(f, b)) continue;
    const bool write = wanted_for_writing(r, b) && may_overwrite_shadow(r, b) && !kept_closed(r, {b, b + 1}, true);
    r.transition({b, b + 1}, write ? block_event::fetched_for_write : block_event::fetched);
    const os::page_protection its =
        !write && r.reader.is_marker(b) ? os::page_protection::none : work::access_for(r.state(b));
    if (b != same.end || its != allowed) {
      open_run();
      same = {b, b};
      allowed = its;
    }
    same.end = b + 1;
  }
  open_run();
  if (!mappings_left) return work::degrade_to_host(env_, r);
  answer_those_in(r, f.run);
}

void lane::answer_those_in(region& r, block_run run) {
  std::erase_if(waiting_, [&](request* w) {
    r.mutex.assert_held();
    if (!r.contains(w->address())) return false;
    const std::uint64_t b = r.block_of(r.offset_of(w->address()));
    const bool open = b >= run.begin && b < run.end && !r.reader.is_marker(b) &&
                      (r.state(b) == block_state::host || (r.state(b) == block_state::shared && !w->write()));
    // The view may have been opened for a thread that executes announced work and therefore does not wait for
    // announcements.
    if (!open || (w->waits_for_announced() && kept_closed(r, {b, b + 1}, w->write(), true))) return false;
    w->answer(fault_verdict::retry);
    return true;
  });
}

}  // namespace hpe::fault
