// Frees host memory that contains data. This file chooses the granules to give up (victims), and contains the thread
// that writes victims to the spill file before memory is needed and the thread that reads the file for lanes.

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"
#include "runtime/base/log.h"
#include "runtime/os/thread.h"
#include "runtime/trace/recorder.h"
#include "runtime/work/host_memory.h"

namespace hpe::work {

using coherence::block_event;
using coherence::block_run;
using coherence::block_state;
using coherence::byte_range;
using coherence::granule_place;
using coherence::host_granule;
using coherence::region;

namespace {

// An eighth of the limit, but at most most_free bytes, is kept free, so that hpe writes the file while other threads
// read and copy.
constexpr std::uint64_t part_free = 8;
constexpr std::uint64_t most_free = std::uint64_t{256} << 20;
// The cost of giving up bytes that only the host has; all other bytes cost 1. Bytes that only the host has must be
// written to the file, and are usually read again.
constexpr std::uint64_t cost_of_written = 8;
constexpr std::chrono::milliseconds until_memory_may_be_unused{1};
constexpr std::chrono::milliseconds until_a_look_ahead{20};
// The number of granules that are read ahead if CPU code reads one granule after the other.
constexpr std::uint64_t granules_ahead = 2;

bool only_on_host(block_state s) noexcept { return s == block_state::host; }

}  // namespace

void host_memory::serve(std::function<void()> arrived) {
  if (!limited()) return;
  arrived_ = std::move(arrived);
  readers_.start("hpe-unspill", transfers_at_once() - 1);
  writers_.start("hpe-spill", transfers_at_once() - 1);
  makes_room_ = os::start_thread("hpe-spill", [this] { make_room_ahead(); });
  reads_ = os::start_thread("hpe-unspill", [this] { read_for_lanes(); });
}

std::uint64_t host_memory::shortage() const {
  const std::uint64_t wanted = taken_ + wanted_ + std::min(limit_ / part_free, most_free);
  return wanted > limit_ ? wanted - limit_ : 0;
}

// The request of the first waiting thread fails only after a search through all memory has found that all memory is
// stuck, and only if no memory was freed, taken or given back during this search. Otherwise some memory can soon be
// freed, and the thread that makes room searches again.
void host_memory::make_room_ahead() {
  unique_lock lock(mutex_);
  for (;;) {
    for_room_.wait(lock,
                   [&]() HPE_REQUIRES(mutex_) { return stop_ || (shortage() != 0 && search_ == search::wanted); });
    if (stop_) return;
    const std::uint64_t bytes = shortage();
    search_ = search::running;
    lock.unlock();
    const room_made made = make_room(bytes);
    lock.lock();
    if (made.freed == 0 && search_ == search::running && kept_ + made.stuck == taken_) {
      search_ = search::all_stuck;
      why_all_stuck_ = made.why.empty() ? "all of it is host memory (hpeMallocHost), or data of allocations that hpe "
                                          "moves only as a whole for lack of mappings"
                                        : made.why;
      changed_.notify_all();
      continue;
    }
    search_ = search::wanted;
    if (made.freed != 0) continue;
    const bool urgent = wanted_ != 0;
    for_room_.wait_for(lock, urgent ? until_memory_may_be_unused : until_a_look_ahead,
                       [&]() HPE_REQUIRES(mutex_) { return stop_ || (wanted_ != 0 && !urgent); });
  }
}

host_memory::room_made host_memory::make_room(std::uint64_t bytes) {
  room_made result;
  mutex of_result;
  bool enough = false;
  try {
    const std::vector<victim> all = victims(result.stuck);
    writers_.for_each(all.size(), [&](std::uint64_t n) {
      {
        const lock_guard lock(of_result);
        if (enough) return;
      }
      const room_made one = give_up(all[n]);
      const lock_guard lock(of_result);
      result.freed += one.freed;
      result.stuck += one.stuck;
      if (result.why.empty()) result.why = one.why;
      const lock_guard own(mutex_);
      enough |= result.freed >= bytes || stop_ || shortage() == 0;
    });
  } catch (const std::exception& e) {
    log(log_level::warn, "making room in host memory: {}", e.what());  // the thread tries again after a pause
  }
  return result;
}

bool host_memory::may_go(const region& r) { return r.alive && !r.on_host.empty() && !r.degraded; }

bool host_memory::needs_write(const region& r, std::uint64_t granule) {
  return !r.on_host[granule].saved && !valid_parts(r, granule, only_on_host).empty();
}

std::vector<host_memory::victim> host_memory::victims(std::uint64_t& stuck) const {
  std::vector<victim> result;
  const std::uint64_t time = clock_.load(std::memory_order_relaxed) + 1;
  for (std::uint32_t number = 1; number < regions_.limit(); ++number) {
    region& r = regions_.at(number);
    const lock_guard lock(r.mutex);
    r.mutex.assert_held();
    if (!r.alive) continue;
    for (std::uint64_t n = 0; n < r.on_host.size(); ++n) {
      const host_granule& g = r.on_host[n];
      if (!may_go(r) && g.counts()) stuck += bytes_of(r, n).size();
      if (!may_go(r) || g.where != granule_place::memory) continue;
      const std::uint64_t age = time - g.used;
      result.push_back({&r, n, needs_write(r, n) ? age : age * cost_of_written});
    }
  }
  std::ranges::stable_sort(result, [](const victim& a, const victim& b) { return a.age > b.age; });
  return result;
}

bool host_memory::unused(const region& r, std::uint64_t granule) const {
  if (r.shadow_readers.load() != 0) return false;
  const byte_range bytes = bytes_of(r, granule);
  const block_run run = r.blocks_of(bytes);
  for (std::uint64_t b = run.begin; b < run.end; ++b)
    if (r.state(b) == block_state::fetching) return false;
  const auto& pieces = r.resident.all();
  for (auto piece = pieces.from(bytes.begin); piece != pieces.end() && piece->first < bytes.end; ++piece)
    if (piece->second.value.copied && !reached(piece->second.value.copied->copies, devices_)) return false;
  return reached(users_of_shadow(r, bytes).points(), devices_);
}

host_memory::room_made host_memory::give_up(const victim& v) {
  region& r = *v.region;
  std::uint32_t extent = host_granule::no_extent;
  std::uint64_t transfer = 0;
  std::vector<byte_range> parts;
  {
    const lock_guard lock(r.mutex);
    r.mutex.assert_held();
    if (!may_go(r) || v.granule >= r.on_host.size() || r.on_host[v.granule].where != granule_place::memory) return {};
    if (!unused(r, v.granule)) return {};
    host_granule& g = r.on_host[v.granule];
    const byte_range bytes = bytes_of(r, v.granule);
    const bool write = needs_write(r, v.granule);
    if (write && g.extent == host_granule::no_extent) {
      try {
        g.extent = file_->take();
      } catch (const error& e) {
        return {0, bytes.size(), e.what()};
      }
    }
    const block_run run = r.blocks_of(bytes);
    if (!views_.set(r, run, os::page_protection::none))
      return {0, bytes.size(), "the Linux kernel has no room for more mappings"};
    // Copies that evictions have made in these pages are discarded with the pages. The blocks of these copies are not
    // in state host yet, so the homes have their valid bytes.
    auto& pieces = r.resident.all();
    for (auto piece = pieces.from(bytes.begin); piece != pieces.end() && piece->first < bytes.end; ++piece)
      piece->second.value.copied.reset();
    if (!write) return {drop(r, v.granule), 0, {}};
    // A device also has the bytes of shared blocks, so the host's copy of these blocks is dropped and not written.
    for (std::uint64_t b = run.begin; b < run.end; ++b)
      if (r.state(b) == block_state::shared) r.transition({b, b + 1}, block_event::device_write);
    parts = valid_parts(r, v.granule, has_host_copy);
    begin_transfer(r, g);
    g.where = granule_place::leaving;
    g.changed = false;
    extent = g.extent;
    transfer = g.transfer;
  }
  room_made result;
  try {
    this->write(r, v.granule, extent, parts);
  } catch (const std::exception& e) {
    result.why = e.what();
  }
  end_transfer(r);
  const lock_guard lock(r.mutex);
  r.mutex.assert_held();
  if (!r.alive || v.granule >= r.on_host.size() || r.on_host[v.granule].transfer != transfer) return result;
  host_granule& g = r.on_host[v.granule];
  g.saved = result.why.empty() && !g.changed;
  if (g.where == granule_place::leaving && g.saved) {
    result.freed = drop(r, v.granule);
  } else if (g.where == granule_place::leaving) {
    g.where = granule_place::memory;
    if (!result.why.empty()) result.stuck = bytes_of(r, v.granule).size();
  }
  return result;
}

void host_memory::write(region& r, std::uint64_t granule, std::uint32_t extent, const std::vector<byte_range>& parts) {
  for (const byte_range& part : parts) {
    const trace::recorded here(trace::category::file, "write to the spill file", part.size());
    file_->write(extent, part.begin - granule * granule_size, space_.alias(r.layout.base + part.begin), part.size());
    counters::add(count_.bytes_spilled, part.size());
  }
}

std::uint64_t host_memory::drop(region& r, std::uint64_t granule) {
  host_granule& g = r.on_host[granule];
  const byte_range bytes = bytes_of(r, granule);
  std::byte* const pages = space_.alias(r.layout.base + bytes.begin);
  devices_.release_host(pages, bytes.size());
  os::discard(space_.shadow_file(), space_.offset(r.layout.base + bytes.begin), bytes.size());
  if (g.saved) {
    g.where = granule_place::file;
  } else {
    const block_run run = r.blocks_of(bytes);
    for (std::uint64_t b = run.begin; b < run.end; ++b)
      if (r.state(b) == block_state::shared) r.transition({b, b + 1}, block_event::device_write);
    g.where = granule_place::nowhere;
    if (g.extent != host_granule::no_extent) file_->give_back(std::exchange(g.extent, host_granule::no_extent));
  }
  release(bytes.size());
  return bytes.size();
}

void host_memory::ask_for(region& r, byte_range bytes) {
  const auto run = coherence::granules_of(bytes);
  for (std::uint64_t n = run.begin; n < run.end; ++n) {
    host_granule& g = r.on_host[n];
    if (g.in_memory() || g.asked_for) continue;
    const lock_guard lock(mutex_);
    if (std::exchange(g.failed, false)) {
      const auto failure = failures_.extract({r.id, n});
      HPE_THROW(HPE_ERROR_SYSTEM, "{}", failure.empty() ? "it could not be read" : failure.mapped());
    }
    g.asked_for = true;
    wishes_.push_back({r.id, n});
    for_wishes_.notify_one();
  }
}

void host_memory::read_for_lanes() {
  wish last{0, 0};
  unique_lock lock(mutex_);
  for (;;) {
    for_wishes_.wait(lock, [&]() HPE_REQUIRES(mutex_) { return stop_ || !wishes_.empty(); });
    if (stop_) return;
    const wish next = wishes_.front();
    wishes_.erase(wishes_.begin());
    lock.unlock();
    fulfil(next);
    arrived_();
    const bool in_turn = next.region == last.region && next.granule == last.granule + 1;
    last = next;
    lock.lock();
    while (in_turn && wishes_.empty() && last.granule < next.granule + granules_ahead && !stop_) {
      if (served_ != asked_ || taken_ + granule_size > limit_) break;
      ++last.granule;
      lock.unlock();
      bring_ahead(last);
      lock.lock();
    }
  }
}

void host_memory::fulfil(const wish& what) {
  region& r = regions_.at(what.region);
  std::string failure;
  try {
    bring_granule(r, what.granule, nullptr, true);
  } catch (const std::exception& e) {
    failure = e.what();
  }
  const lock_guard lock(r.mutex);
  r.mutex.assert_held();
  if (!r.alive || what.granule >= r.on_host.size()) return;
  host_granule& g = r.on_host[what.granule];
  g.asked_for = false;
  g.failed = !failure.empty();
  if (!g.failed) return;
  const lock_guard own(mutex_);
  failures_[{what.region, what.granule}] = failure;
}

void host_memory::bring_ahead(const wish& what) {
  region& r = regions_.at(what.region);
  {
    const lock_guard lock(r.mutex);
    r.mutex.assert_held();
    if (!r.alive || what.granule >= r.on_host.size() || r.on_host[what.granule].where != granule_place::file) return;
  }
  try {
    bring_granule(r, what.granule, nullptr, false);
  } catch (const std::exception& e) {
    log(log_level::debug, "reading ahead from the spill file: {}", e.what());  // threads that use the granule get the
                                                                               // error
  }
}

}  // namespace hpe::work
