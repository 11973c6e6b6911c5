#include "runtime/fault/lane.h"

#include <algorithm>
#include <cstdlib>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"
#include "runtime/base/log.h"
#include "runtime/fault/explain.h"
#include "runtime/os/thread.h"

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
      !wish.write() && r.state(block) == block_state::host && work::host_memory::saved(r, block);
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
  using shadow_use = work::host_memory::shadow_use;
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
           env_.host.hold(r, r.bytes_of({b, b + 1}), work::host_memory::shadow_use::write);
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

}  // namespace hpe::fault
