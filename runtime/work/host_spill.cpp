#include "runtime/work/host_spill.h"

#include <algorithm>
#include <exception>
#include <new>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"
#include "runtime/base/log.h"
#include "runtime/os/thread.h"
#include "runtime/trace/recorder.h"

// A thread does not hold the region's mutex while it reads or writes the spill file. Each of these transfers has a
// number. After the thread has locked the mutex again, it ignores the transfer's result if the region has ended, or if
// a later transfer of the granule has begun (host_granule::transfer). It ignores the result of a read also if the
// granule is no longer `arriving`, because another thread has brought it into memory.

namespace hpe::work {

using coherence::block_event;
using coherence::block_run;
using coherence::block_state;
using coherence::byte_range;
using coherence::granule_place;
using coherence::granules_of;
using coherence::host_granule;
using coherence::region;

namespace {

// The cost of giving up bytes that only the host has; all other bytes cost 1. Bytes that only the host has must be
// written to the file, and are usually read again.
constexpr std::uint64_t cost_of_written = 8;
// The number of granules that are read ahead if CPU code reads one granule after the other.
constexpr std::uint64_t granules_ahead = 2;

std::string message_of(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& e) {
    return e.what();
  }
}

bool only_on_host(block_state s) noexcept { return s == block_state::host; }

}  // namespace

host_spill::host_spill(std::uint64_t limit, const std::string& folder, device::device_set& devices,
                       const memory::uvas& space, host_view& views, coherence::region_table& regions, counters& count)
    : limit_(limit), budget_(limit), devices_(devices), space_(space), views_(views), regions_(regions), count_(count) {
  if (limited()) file_ = std::make_unique<os::spill_file>(folder, granule_size);
}

host_spill::~host_spill() { stop(); }

void host_spill::stop() noexcept {
  {
    const lock_guard lock(mutex_);
    stop_ = true;
  }
  budget_.stop();
  for_wishes_.notify_all();
  if (makes_room_.joinable()) makes_room_.join();
  if (reads_.joinable()) reads_.join();
  readers_.stop();
  writers_.stop();
}

unsigned host_spill::transfers_at_once() const noexcept {
  constexpr std::uint64_t enough = 8;   // the number of transfers that keep a disk busy
  constexpr std::uint64_t part_of = 8;  // the transfers use at most 1 / part_of of the limit
  return static_cast<unsigned>(std::clamp<std::uint64_t>(limit_ / part_of / granule_size, 1, enough));
}

byte_range host_spill::bytes_of(const region& r, std::uint64_t granule) noexcept {
  return {granule * granule_size, std::min((granule + 1) * granule_size, r.layout.extent)};
}

void host_spill::track(region& r) {
  r.on_host.clear();
  if (limited() && !r.single_copy()) r.on_host.resize((r.layout.extent + granule_size - 1) / granule_size);
}

void host_spill::forget(region& r) noexcept {
  if (!limited()) return;
  wait_for_transfers(r);
  std::uint64_t bytes = 0;
  {
    const lock_guard lock(r.mutex);
    r.mutex.assert_held();
    for (std::uint64_t n = 0; n < r.on_host.size(); ++n) {
      const host_granule& g = r.on_host[n];
      if (g.counts()) bytes += bytes_of(r, n).size();
      if (g.extent != host_granule::no_extent) file_->give_back(g.extent);
    }
    r.on_host.clear();
    const lock_guard own(mutex_);
    failures_.erase(failures_.lower_bound({r.id, 0}), failures_.lower_bound({r.id + 1, 0}));
  }
  budget_.release(bytes);
}

bool host_spill::hold(region& r, byte_range bytes, shadow_use how) {
  if (r.on_host.empty() || bytes.empty()) return true;
  const auto run = granules_of(bytes);
  std::uint64_t more = 0;
  for (std::uint64_t n = run.begin; n < run.end; ++n) {
    const host_granule& g = r.on_host[n];
    if (g.where == granule_place::nowhere) {
      more += bytes_of(r, n).size();
    } else if (!g.in_memory()) {
      return false;
    }
  }
  if (more != 0 && !budget_.try_reserve(more)) return false;
  const std::uint64_t time = now();
  for (std::uint64_t n = run.begin; n < run.end; ++n) {
    host_granule& g = r.on_host[n];
    g.where = granule_place::memory;
    g.used = time;
    if (how == shadow_use::read) continue;
    g.changed = true;
    g.saved = false;
  }
  return true;
}

bool host_spill::in_memory(const region& r, byte_range bytes) {
  if (r.on_host.empty() || bytes.empty()) return true;
  const auto run = granules_of(bytes);
  for (std::uint64_t n = run.begin; n < run.end; ++n)
    if (!r.on_host[n].in_memory()) return false;
  return true;
}

bool host_spill::saved(const region& r, std::uint64_t block) {
  if (r.on_host.empty() || r.degraded) return false;
  const host_granule& g = r.on_host[r.bytes_of({block, block + 1}).begin / granule_size];
  return g.saved || g.where == granule_place::leaving;
}

void host_spill::bring(const region_range& bytes, state_test is, bool beyond) {
  if (!limited() || bytes.range.empty()) return;
  const auto run = granules_of(bytes.range);
  readers_.for_each(run.end - run.begin,
                    [&](std::uint64_t n) { bring_granule(*bytes.region, run.begin + n, is, beyond); });
}

std::vector<byte_range> host_spill::valid_parts(const region& r, std::uint64_t granule, state_test is) {
  std::vector<byte_range> parts;
  const block_run run = r.blocks_of(bytes_of(r, granule));
  for (std::uint64_t b = run.begin; b < run.end; ++b) {
    if (!is(r.state(b))) continue;
    const byte_range bytes = r.bytes_of({b, b + 1});
    if (!parts.empty() && parts.back().end == bytes.begin) {
      parts.back().end = bytes.end;
    } else {
      parts.push_back(bytes);
    }
  }
  return parts;
}

void host_spill::read(const region& r, std::uint64_t granule, std::uint32_t extent,
                      const std::vector<byte_range>& parts) {
  for (const byte_range& part : parts) {
    const trace::recorded here(trace::category::file, "read from the spill file", part.size());
    file_->read(extent, part.begin - granule * granule_size, space_.alias(r.layout.base + part.begin), part.size());
    counters::add(count_.bytes_unspilled, part.size());
  }
}

void host_spill::bring_granule(region& r, std::uint64_t granule, state_test is, bool beyond) {
  for (;;) {
    const auto needed = [&]() HPE_REQUIRES(r.mutex) {
      return r.alive && granule < r.on_host.size() && !r.degraded &&
             (is == nullptr || !valid_parts(r, granule, is).empty());
    };
    std::uint64_t bytes = 0;
    {
      const lock_guard lock(r.mutex);
      r.mutex.assert_held();
      if (!needed()) return;
      host_granule& g = r.on_host[granule];
      if (g.in_memory()) {
        g.where = granule_place::memory;
        g.used = now();
        return;
      }
      if (g.where != granule_place::arriving) bytes = bytes_of(r, granule).size();
    }
    if (bytes == 0) {  // another thread is reading the granule from the spill file
      wait_for_transfers(r);
      continue;
    }
    budget_.reserve(bytes, beyond);
    std::vector<byte_range> parts;
    std::uint32_t extent = host_granule::no_extent;
    std::uint64_t transfer = 0;
    {
      const lock_guard lock(r.mutex);
      r.mutex.assert_held();
      const bool still = needed() && !r.on_host[granule].counts();
      if (!still) {
        budget_.release(bytes);
        continue;
      }
      host_granule& g = r.on_host[granule];
      g.used = now();
      if (g.where == granule_place::nowhere) {
        g.where = granule_place::memory;
        return;
      }
      parts = valid_parts(r, granule, has_host_copy);
      begin_transfer(r, g);
      g.where = granule_place::arriving;
      extent = g.extent;
      transfer = g.transfer;
    }
    const auto finish = [&](granule_place where) {
      const lock_guard lock(r.mutex);
      r.mutex.assert_held();
      if (!r.alive || granule >= r.on_host.size()) return;
      host_granule& g = r.on_host[granule];
      if (g.where != granule_place::arriving || g.transfer != transfer) return;
      g.where = where;
      if (where == granule_place::file) budget_.release(bytes);
    };
    try {
      read(r, granule, extent, parts);
    } catch (...) {
      end_transfer(r);
      finish(granule_place::file);
      throw;
    }
    end_transfer(r);
    finish(granule_place::memory);
    return;
  }
}

void host_spill::bring_all(region& r) {
  if (r.on_host.empty()) return;
  wait_for_transfers(r);  // transfers end without locking a region's mutex
  for (std::uint64_t n = 0; n < r.on_host.size(); ++n) {
    host_granule& g = r.on_host[n];
    if (!g.counts()) budget_.exceed(bytes_of(r, n).size());
    if (g.where == granule_place::file || g.where == granule_place::arriving) {
      try {
        read(r, n, g.extent, valid_parts(r, n, has_host_copy));
      } catch (...) {
        if (!g.counts()) budget_.release(bytes_of(r, n).size());
        throw;
      }
    }
    g.where = granule_place::memory;
    g.used = now();
    g.changed = true;
    g.saved = false;
  }
}

void host_spill::begin_transfer(region& r, host_granule& g) {
  static std::atomic<std::uint64_t> numbers{0};
  g.transfer = numbers.fetch_add(1, std::memory_order_relaxed) + 1;
  const lock_guard lock(mutex_);
  ++transfers_[r.id];
}

void host_spill::end_transfer(const region& r) noexcept {
  {
    const lock_guard lock(mutex_);
    const auto its = transfers_.find(r.id);
    if (--its->second == 0) transfers_.erase(its);
  }
  changed_.notify_all();
}

void host_spill::wait_for_transfers(const region& r) noexcept {
  unique_lock lock(mutex_);
  changed_.wait(lock, [&]() HPE_REQUIRES(mutex_) { return !transfers_.contains(r.id); });
}

// ---- making room, and reading for lanes -----------------------------------------------------------------------------

void host_spill::serve(std::function<void()> arrived) {
  if (!limited()) return;
  arrived_ = std::move(arrived);
  readers_.start("hpe-unspill", transfers_at_once() - 1);
  writers_.start("hpe-spill", transfers_at_once() - 1);
  makes_room_ = os::start_thread(
      "hpe-spill", [this] { budget_.keep_room([this](std::uint64_t bytes) { return make_room(bytes); }); });
  reads_ = os::start_thread("hpe-unspill", [this] { read_for_lanes(); });
}

host_budget::room_made host_spill::make_room(std::uint64_t bytes) {
  host_budget::room_made result;
  mutex of_result;
  bool enough = false;
  try {
    const std::vector<victim> all = victims(result.stuck);
    writers_.for_each(all.size(), [&](std::uint64_t n) {
      {
        const lock_guard lock(of_result);
        if (enough) return;
      }
      const host_budget::room_made one = give_up(all[n]);
      const lock_guard lock(of_result);
      result.freed += one.freed;
      result.stuck += one.stuck;
      if (result.why.empty()) result.why = one.why;
      enough |= result.freed >= bytes || budget_.has_enough();
    });
  } catch (const std::exception& e) {
    log(log_level::warn, "making room in host memory: {}", e.what());  // the thread tries again after a pause
  }
  return result;
}

bool host_spill::may_go(const region& r) { return r.alive && !r.on_host.empty() && !r.degraded; }

bool host_spill::needs_write(const region& r, std::uint64_t granule) {
  return !r.on_host[granule].saved && !valid_parts(r, granule, only_on_host).empty();
}

std::vector<host_spill::victim> host_spill::victims(std::uint64_t& stuck) const {
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

bool host_spill::unused(const region& r, std::uint64_t granule) const {
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

host_budget::room_made host_spill::give_up(const victim& v) {
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
  host_budget::room_made result;
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

void host_spill::write(region& r, std::uint64_t granule, std::uint32_t extent, const std::vector<byte_range>& parts) {
  for (const byte_range& part : parts) {
    const trace::recorded here(trace::category::file, "write to the spill file", part.size());
    file_->write(extent, part.begin - granule * granule_size, space_.alias(r.layout.base + part.begin), part.size());
    counters::add(count_.bytes_spilled, part.size());
  }
}

std::uint64_t host_spill::drop(region& r, std::uint64_t granule) {
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
  budget_.release(bytes.size());
  return bytes.size();
}

void host_spill::ask_for(region& r, byte_range bytes) {
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

void host_spill::read_for_lanes() {
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
      if (!budget_.has_free(granule_size)) break;
      ++last.granule;
      lock.unlock();
      bring_ahead(last);
      lock.lock();
    }
  }
}

void host_spill::fulfil(const wish& what) {
  region& r = regions_.at(what.region);
  std::exception_ptr failure;
  try {
    bring_granule(r, what.granule, nullptr, true);
  } catch (const std::exception&) {
    failure = std::current_exception();
  }
  const lock_guard lock(r.mutex);
  r.mutex.assert_held();
  if (!r.alive || what.granule >= r.on_host.size()) return;
  host_granule& g = r.on_host[what.granule];
  g.asked_for = false;
  g.failed = failure != nullptr;
  if (!g.failed) return;
  try {
    const lock_guard own(mutex_);
    failures_[{what.region, what.granule}] = message_of(failure);
  } catch (const std::bad_alloc&) {
    // ask_for() then throws without the reason.
  }
}

void host_spill::bring_ahead(const wish& what) {
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
