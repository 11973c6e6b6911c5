#include "runtime/fault/lane.h"

#include <algorithm>
#include <cstdlib>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"
#include "runtime/base/log.h"
#include "runtime/fault/explain.h"
#include "runtime/os/thread.h"
#include "runtime/trace/profile.h"

// Invariants, under the region's mutex:
//  - A block is in state fetching if and only if one fetch in fetches_ of the region's lane has its number. Device work
//    that writes the block changes this state; the fetch then ignores the block.
//  - An issued fetch is recorded in the region's order as a reader of the home, so device work that writes waits for
//    it.
//  - A view is opened only in a critical section in which the block has, or enters, a state with a valid shadow.

namespace hpe::fault {

using coherence::apply;
using coherence::block_actions;
using coherence::block_event;
using coherence::block_run;
using coherence::block_state;
using coherence::byte_range;
using coherence::point_set;
using coherence::region;
using device::priority;

namespace {

thread_local bool this_is_a_lane = false;

}  // namespace

bool in_lane_thread() noexcept { return this_is_a_lane; }

lane::lane(unsigned number, unsigned lanes, const lane_environment& environment, std::unique_ptr<device::gate> gate)
    : number_(number), lanes_(lanes), env_(environment), gate_(std::move(gate)) {}

lane::~lane() {
  stop_.store(true, std::memory_order_release);
  gate_->ring();
  if (thread_.joinable()) thread_.join();
}

void lane::start(request_board& board) {
  board_ = &board;
  waiting_.reserve(request_board::slot_count);
  thread_ = os::start_thread("hpe-lane", [this] {
    this_is_a_lane = true;
    // At the first small allocation of a thread, the C library reserves memory for the thread's small allocations. The
    // lane makes this allocation at its start, because no memory may be free later.
    constexpr std::size_t enough = std::size_t{64} << 10;
    void* const volatile taken = std::malloc(enough);  // volatile, so that the compiler keeps the calls
    std::free(taken);
    env_.settle(number_);
    run();
  });
}

void lane::prefetch(std::uint32_t number, byte_range range) {
  {
    const lock_guard lock(inbox_mutex_);
    inbox_.push_back({number, range});
  }
  gate_->ring();
}

void lane::run() {
  while (!stop_.load(std::memory_order_acquire)) {
    board_->take(number_, waiting_);
    serve_prefetches();
    std::erase_if(fetches_, [&](fetch& f) { return advance(f); });

    watched_.clear();
    std::erase_if(waiting_, [&](request* r) { return serve(*r) == outcome::answered; });
    if (!watch_fetches()) continue;
    if (is_out_of_patience()) refuse_waiting();
    using clock = std::chrono::steady_clock;
    constexpr std::chrono::milliseconds until_memory_may_be_there{10};
    gate_->sleep(watched_, short_of_memory_ ? clock::now() + until_memory_may_be_there : clock::time_point::max());
    short_of_memory_ = false;
  }
}

bool lane::is_out_of_patience() {
  if (!short_of_memory_) {
    short_since_.reset();
    return false;
  }
  const auto now = std::chrono::steady_clock::now();
  if (!short_since_) short_since_ = now;
  return now - *short_since_ >= env_.patience;
}

void lane::refuse_waiting() noexcept {
  for (request* const r : waiting_) {
    handler_line()
        .text("hpe: the data of ")
        .hex(reinterpret_cast<std::uintptr_t>(r->address()))
        .text(" cannot be brought to the host: the process has been out of memory for ")
        .decimal(static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::seconds>(env_.patience).count()))
        .text(" s; limits are RLIMIT_DATA (ulimit -d), RLIMIT_AS (ulimit -v) and memory.max of the control group")
        .write();
    r->answer(fault_verdict::not_ours);
  }
  waiting_.clear();
}

bool lane::watch_fetches() noexcept {
  try {
    for (const fetch& f : fetches_) {
      const std::span<const timepoint> next = next_of(f);
      if (reached(next) && !short_of_memory_) return false;
      watched_.insert(watched_.end(), next.begin(), next.end());
    }
  } catch (const std::bad_alloc&) {
    short_of_memory_ = true;
  }
  return true;
}

void lane::serve_prefetches() {
  std::vector<prefetch_wish> wishes;
  {
    const lock_guard lock(inbox_mutex_);
    wishes.swap(inbox_);
  }
  for (const prefetch_wish& wish : wishes) {
    region& r = env_.regions.at(wish.region);
    const lock_guard lock(r.mutex);
    if (!r.alive) continue;
    fetch_ahead(r, r.blocks_of({wish.range.begin, std::min(wish.range.end, r.layout.extent)}));
  }
}

lane::outcome lane::serve(request& r) noexcept {
  try {
    return try_to_serve(r);
  } catch (const std::bad_alloc&) {
    short_of_memory_ = true;
    return outcome::waiting;
  } catch (const std::exception& e) {
    log(log_level::error, "the data of {} cannot be brought to the host: {}", static_cast<void*>(r.address()),
        e.what());
  }
  r.answer(fault_verdict::not_ours);
  return outcome::answered;
}

lane::outcome lane::try_to_serve(request& r) {
  const memory::granule_entry entry = env_.granules.find(r.address());
  // Since the fault, the address may have become part of another region. Only the lane of that region knows the
  // region's fetches.
  if (entry.region != 0 && !serves(entry.region)) {
    r.answer(fault_verdict::retry);
    return outcome::answered;
  }
  if (entry.region != 0) {
    region& found = env_.regions.at(entry.region);
    const lock_guard lock(found.mutex);
    if (found.alive && found.contains(r.address()))
      return serve_locked(r, found, found.block_of(found.offset_of(r.address())));
  }
  log(log_level::error, "{}", explain_stray_access(r.address(), r.write(), env_.granules, env_.regions));
  r.answer(fault_verdict::not_ours);
  return outcome::answered;
}

lane::outcome lane::serve_locked(request& wish, region& r, std::uint64_t block) {
  block_event event = block_event::host_read;
  if (wish.write()) event = r.advice == HPE_ADVISE_WRITE_ONLY ? block_event::host_overwrite : block_event::host_write;
  const block_actions actions = apply(r.state(block), event).actions;

  // A read of a block in state host also opens the block's view for writing, unless the block's bytes are also in the
  // spill file.
  const bool only_reads_saved =
      !wish.write() && r.state(block) == block_state::host && work::host_spill::saved(r, block);
  const bool opens_for_writing = wish.write() || (actions.open_write && !only_reads_saved);
  if (wish.waits_for_announced() && kept_closed(r, {block, block + 1}, opens_for_writing, true))
    return outcome::waiting;
  if (actions.wait) {
    // If several threads read faster than the link copies, they reach the marker of the next window before its data has
    // arrived.
    if (r.reader.is_marker(block)) fetch_ahead(r, r.reader.touched(block));
    return outcome::waiting;
  }
  if (!is_in_memory(r, block, actions.fetch || opens_for_writing)) return outcome::waiting;
  if (actions.fetch) {
    counters::add(wish.write() ? env_.count.faults_write : env_.count.faults_read, 1);
    const block_run ahead = r.reader.touched(block, is_alone(r, block));
    if (ahead.empty() && r.reader.scattered()) {
      refine(r);
      block = r.block_of(r.offset_of(wish.address()));
    }
    start_fetches(r, {block, block + 1}, priority::waiting_host);
    fetch_ahead(r, ahead);
    return outcome::waiting;
  }
  if (actions.wait_upload && !may_overwrite_shadow(r, block)) {
    const point_set until = work::users_of_shadow(r, r.bytes_of({block, block + 1}));
    watched_.insert(watched_.end(), until.points().begin(), until.points().end());
    return outcome::waiting;
  }
  counters::add(wish.write() ? env_.count.faults_write : env_.count.faults_read, 1);
  if (only_reads_saved) {
    open_saved(r, block);
    wish.answer(fault_verdict::retry);
    return outcome::answered;
  }
  const auto behind = actions.open_write ? open_for_writing(r, block, event) : std::deque<block_run>();
  if (actions.open_read) open_for_reading(r, block);
  wish.answer(fault_verdict::retry);
  upload_behind(r, behind);  // after the answer, so that the thread continues in the meantime
  return outcome::answered;
}

bool lane::kept_closed(region& r, block_run run, bool write, bool watch) const {
  r.open_soon();
  return env_.announced.in_the_way(r, r.bytes_of(run), write, watch) != 0;
}

bool lane::may_overwrite_shadow(const region& r, std::uint64_t block) const {
  return reached(work::users_of_shadow(r, r.bytes_of({block, block + 1})).points());
}

bool lane::is_in_memory(region& r, std::uint64_t block, bool write) {
  using shadow_use = work::host_spill::shadow_use;
  const byte_range bytes = r.bytes_of({block, block + 1});
  if (env_.host.hold(r, bytes, write ? shadow_use::write : shadow_use::read)) return true;
  env_.host.ask_for(r, bytes);
  return false;
}

void lane::open_saved(region& r, std::uint64_t block) {
  const std::uint64_t granule = r.bytes_of({block, block + 1}).begin / granule_size * granule_size;
  const block_run all = r.blocks_of({granule, std::min(granule + granule_size, r.layout.extent)});
  std::uint64_t begin = block;
  while (begin > all.begin && r.state(begin - 1) == block_state::host) --begin;
  const block_run run{begin, r.blocks().same_from(block, all.end).end};
  const block_run opened = kept_closed(r, run, false) ? block_run{block, block + 1} : run;
  if (!env_.views.set(r, opened, os::page_protection::read)) work::degrade_to_host(env_, r);
}

void lane::open_for_reading(region& r, std::uint64_t block) {
  if (r.reader.is_marker(block)) fetch_ahead(r, r.reader.touched(block));
  if (!env_.views.set(r, {block, block + 1}, os::page_protection::read)) work::degrade_to_host(env_, r);
}

std::deque<block_run> lane::open_for_writing(region& r, std::uint64_t block, block_event event) {
  const auto opens_without_copy = [&](std::uint64_t b) {
    r.mutex.assert_held();
    const block_state s = r.state(b);
    const bool free = s == block_state::fresh || (s == block_state::shared && may_overwrite_shadow(r, b));
    return free && !kept_closed(r, {b, b + 1}, true) &&
           env_.host.hold(r, r.bytes_of({b, b + 1}), work::host_spill::shadow_use::write);
  };
  auto plan = r.writer.touched(block, r.blocks().rolled(block), opens_without_copy);
  const std::uint64_t end = std::max(block + 1, plan.open.end);

  // If the event is host_overwrite, the touched block changes to state host without a fetch. The other blocks are fresh
  // or shared.
  r.transition({block, block + 1}, event);
  r.transition({block + 1, end}, block_event::host_write);
  if (!plan.open.empty()) expect_copies(r, {block, plan.open.end});
  if (env_.views.set(r, {block, end}, os::page_protection::read_write)) return std::move(plan.upload);
  work::degrade_to_host(env_, r);
  return {};
}

// ---- copies: fetches until their view opens, and uploads of blocks that CPU code has just written -------------------

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
    if (!env_.host.hold(r, r.bytes_of(same), work::host_spill::shadow_use::read)) continue;
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
    if (!env_.host.hold(r, r.bytes_of({b, end}), work::host_spill::shadow_use::write)) return;
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
