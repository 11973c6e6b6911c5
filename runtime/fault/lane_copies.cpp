// What a lane copies: fetches, from their start to the opened view, and uploads behind a writing host. The invariants
// are those of lane.cpp.

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
using coherence::point_set;
using coherence::region;
using device::priority;

namespace {

// One copy is at most this long, so that views open while a long window is still on its way.
// Copies of 8 MiB fill the link of a GPU (54.7 of 55.4 GB/s); those of 2 MiB do not (52.7).
constexpr std::uint64_t fetch_piece = 4 * granule_size;

}  // namespace

void lane::upload_behind(region& r, const std::deque<block_run>& runs) {
  try {
    for (const block_run& run : runs)
      if (!r.degraded) upload_behind(r, run);  // one of them may make all blocks one
  } catch (const error& e) {
    // Nobody waits for this. Who needs the data at home meets the same failure and is told.
    log(log_level::debug, "upload behind a writer: {}", e.what());
  }
}

void lane::upload_behind(region& r, block_run run) {
  for (std::uint64_t b = run.begin; b < run.end;) {
    if (!apply(r.blocks[b].state, block_event::flush).actions.upload) {
      ++b;
      continue;
    }
    const byte_range first = r.bytes_of({b, b + 1});
    const std::uint64_t home_end = r.end_of_home(first.begin, r.bytes_of(run).end);
    std::uint64_t end = b + 1;
    while (end < run.end && r.blocks[end].state == block_state::host && r.bytes_of({end, end + 1}).end <= home_end)
      ++end;

    // Closed to writers before the copy reads the shadow, so that no write is lost.
    if (!env_.views.set(r, {b, end}, os::access::read)) return degrade(r);
    const byte_range bytes = r.bytes_of({b, end});
    point_set after;
    r.order.before_write(bytes, after);
    // If this throws, the host keeps what it wrote.
    r.order.record_write(bytes, env_.engine.upload(r.home_of(bytes.begin), r.is.base + bytes.begin, bytes.size(),
                                                   after.points(), priority::rolling));
    trace::moved(r.is.base, r.is.bytes, bytes.size(), true);
    for (; b < end; ++b) {
      r.set_state(b, block_state::shared);
      r.blocks[b].rolled = true;
      counters::add(env_.count.blocks_rolled, 1);
    }
  }
}

void lane::start_fetches(region& r, block_run run, priority level) {
  run.end = std::min<std::uint64_t>(run.end, r.blocks.size());
  for (std::uint64_t b = run.begin; b < run.end;) {
    if (!apply(r.blocks[b].state, block_event::prefetch).actions.fetch) {
      ++b;
      continue;
    }
    const std::uint64_t begin = r.bytes_of({b, b + 1}).begin;
    const std::uint64_t limit = r.end_of_home(begin, begin + std::max(fetch_piece, r.is.block_size));
    fetch f{&r, {b, b}, ++last_fetch_, level, {}, {}};
    do {
      r.set_state(b, block_state::fetching);
      r.blocks[b].fetch = f.number;
      ++b;
    } while (b < run.end && r.blocks[b].state == block_state::device && r.bytes_of({b, b + 1}).end <= limit);
    f.run.end = b;
    if (level == priority::prefetch) counters::add(env_.count.blocks_prefetched, f.run.end - f.run.begin);
    r.order.before_read(r.bytes_of(f.run), f.after);
    if (reached(f.after)) issue(f);
    fetches_.push_back(std::move(f));
  }
}

void lane::expect_copies(const region& r, block_run run) {
  // The further a walk has come, the further it is likely to go on. It must not outrun the making of pages, which is
  // slower than the link. Of a writer only the run is known, and taken for half of the way.
  constexpr std::uint64_t times = 4;
  const std::uint64_t walked = std::max(r.reader.walked(run.end), 2 * (run.end - run.begin));
  constexpr std::uint64_t most_bytes = std::uint64_t{256} << 20;
  // Many pages at a time are made faster than few.
  constexpr std::uint64_t unit = std::uint64_t{32} << 20;
  const std::uint64_t begin = run.end * r.is.block_size;
  const std::uint64_t end = begin + std::min(times * walked * r.is.block_size, most_bytes);
  const byte_range bytes{begin, std::min(round_up(end, unit), r.is.extent)};
  if (!bytes.empty() && !r.single_copy()) env_.engine.expect(r.is.base + bytes.begin, bytes.size());
}

void lane::fetch_ahead(region& r, block_run run) {
  if (run.empty() || kept_closed(r, run, false)) return;
  try {
    expect_copies(r, run);
    start_fetches(r, run, priority::prefetch);
  } catch (const error& e) {
    log(log_level::debug, "prefetch: {}", e.what());
  }
}

void lane::issue(fetch& f) {
  region& r = *f.region;
  f.after.clear();
  if (r.single_copy()) return;  // waiting was all
  const byte_range bytes = r.bytes_of(f.run);
  try {
    for (std::uint64_t at = bytes.begin; at < bytes.end;) {
      const std::uint64_t end = r.end_of_home(at, bytes.end);
      const timepoint copied = env_.engine.download(r.home_of(at), r.is.base + at, end - at, {}, f.level);
      r.order.record_read({at, end}, copied);
      trace::moved(r.is.base, r.is.bytes, end - at, false);
      f.copies.add(copied);
      at = end;
    }
  } catch (...) {
    for (std::uint64_t b = f.run.begin; b < f.run.end; ++b) r.set_state(b, block_state::device);
    throw;
  }
}

bool lane::owns(const fetch& f, std::uint64_t b) {
  const region& r = *f.region;
  return r.alive && b < r.blocks.size() && r.blocks[b].state == block_state::fetching && r.blocks[b].fetch == f.number;
}

bool lane::advance(fetch& f) {
  const bool held = !f.after.empty();
  if (!reached(held ? f.after : f.copies)) return false;

  region& r = *f.region;
  const std::lock_guard lock(r.mutex);
  if (held) {
    // Device work may have overwritten some of the blocks meanwhile. The first unbroken run goes on; what lies behind
    // it is fetched again when somebody touches it.
    while (f.run.begin < f.run.end && !owns(f, f.run.begin)) ++f.run.begin;
    std::uint64_t end = f.run.begin;
    while (end < f.run.end && owns(f, end)) ++end;
    for (std::uint64_t b = end; b < f.run.end; ++b)
      if (owns(f, b)) r.set_state(b, block_state::device);
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
  for (const timepoint p : f.copies.points()) {
    if (const auto failure = env_.devices.status_of(p)) {
      give_up(f, failure->what());
      return true;
    }
  }
  try {
    complete(f);
  } catch (const error& e) {
    log(log_level::error, "opening {} bytes at {}: {}", r.is.bytes, static_cast<void*>(r.is.base), e.what());
  }
  return true;
}

void lane::give_up(const fetch& f, const char* why) {
  region& r = *f.region;
  for (std::uint64_t b = f.run.begin; b < f.run.end; ++b)
    if (owns(f, b)) r.set_state(b, block_state::device);
  std::erase_if(waiting_, [&](request* w) {
    if (!r.contains(w->address())) return false;
    const std::uint64_t b = r.block_of(r.offset_of(w->address()));
    if (b < f.run.begin || b >= f.run.end) return false;
    log(log_level::error, "the data at {} cannot be brought to the host: {}", static_cast<void*>(w->address()), why);
    w->answer(verdict::not_ours);
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
  // Neighbours that get the same protection get it in one call.
  block_run same;
  os::access allowed = os::access::none;
  bool mappings_left = true;
  const auto open_run = [&] {
    if (allowed != os::access::none) mappings_left = mappings_left && env_.views.set(r, same, allowed);
  };
  for (std::uint64_t b = f.run.begin; b < f.run.end; ++b) {
    if (!owns(f, b)) continue;
    const bool write = wanted_for_writing(r, b) && may_overwrite_shadow(r, b) && !kept_closed(r, {b, b + 1}, true);
    r.set_state(b, apply(block_state::fetching, write ? block_event::fetched_for_write : block_event::fetched).next);
    const os::access its = !write && r.reader.is_marker(b) ? os::access::none : access_for(r.blocks[b].state);
    if (b != same.end || its != allowed) {
      open_run();
      same = {b, b};
      allowed = its;
    }
    same.end = b + 1;
  }
  open_run();
  if (!mappings_left) return degrade(r);
  answer_those_in(r, f.run);
}

void lane::answer_those_in(region& r, block_run run) {
  std::erase_if(waiting_, [&](request* w) {
    if (!r.contains(w->address())) return false;
    const std::uint64_t b = r.block_of(r.offset_of(w->address()));
    const bool open =
        b >= run.begin && b < run.end && !r.reader.is_marker(b) &&
        (r.blocks[b].state == block_state::host || (r.blocks[b].state == block_state::shared && !w->write()));
    // It may have been opened for a thread that does not wait for announced work.
    if (!open || (w->waits_for_announced() && kept_closed(r, {b, b + 1}, w->write(), true))) return false;
    w->answer(verdict::retry);
    return true;
  });
}

}  // namespace hpe::fault
