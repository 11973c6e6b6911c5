#include "runtime/work/host_memory.h"

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"
#include "runtime/base/log.h"
#include "runtime/trace/recorder.h"

// A thread does not hold the region's mutex while it reads or writes the spill file. Each of these transfers has a
// number. After the thread has locked the mutex again, it ignores the transfer's result if the region has ended, or if
// a later transfer of the granule has begun (host_granule::transfer). It ignores the result of a read also if the
// granule is no longer `arriving`, because another thread has brought it into memory.

namespace hpe::work {

using coherence::block_run;
using coherence::byte_range;
using coherence::granules_of;
using coherence::host_granule;
using coherence::region;
using place = coherence::host_granule::place;

host_memory::host_memory(std::uint64_t limit, const std::string& folder, device::device_set& devices,
                         const memory::uvas& space, host_view& views, coherence::region_table& regions, counters& count)
    : limit_(limit), devices_(devices), space_(space), views_(views), regions_(regions), count_(count) {
  if (limited()) file_ = std::make_unique<os::spill_file>(folder, granule_size);
}

host_memory::~host_memory() { stop(); }

void host_memory::stop() noexcept {
  {
    const lock_guard lock(mutex_);
    stop_ = true;
  }
  for_room_.notify_all();
  for_wishes_.notify_all();
  if (makes_room_.joinable()) makes_room_.join();
  if (reads_.joinable()) reads_.join();
  readers_.stop();
  writers_.stop();
}

unsigned host_memory::transfers_at_once() const noexcept {
  constexpr std::uint64_t enough = 8;   // the number of transfers that keep a disk busy
  constexpr std::uint64_t part_of = 8;  // the transfers use at most 1 / part_of of the limit
  return static_cast<unsigned>(std::clamp<std::uint64_t>(limit_ / part_of / granule_size, 1, enough));
}

byte_range host_memory::bytes_of(const region& r, std::uint64_t granule) noexcept {
  return {granule * granule_size, std::min((granule + 1) * granule_size, r.layout.extent)};
}

void host_memory::track(region& r) {
  r.on_host.clear();
  if (limited() && !r.single_copy()) r.on_host.resize((r.layout.extent + granule_size - 1) / granule_size);
}

void host_memory::forget(region& r) noexcept {
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
  release(bytes);
}

bool host_memory::hold(region& r, byte_range bytes, use how) {
  if (r.on_host.empty() || bytes.empty()) return true;
  const auto run = granules_of(bytes);
  std::uint64_t more = 0;
  for (std::uint64_t n = run.begin; n < run.end; ++n) {
    const host_granule& g = r.on_host[n];
    if (g.where == place::nowhere) {
      more += bytes_of(r, n).size();
    } else if (!g.in_memory()) {
      return false;
    }
  }
  if (more != 0 && !try_reserve(more)) return false;
  const std::uint64_t time = now();
  for (std::uint64_t n = run.begin; n < run.end; ++n) {
    host_granule& g = r.on_host[n];
    g.where = place::memory;
    g.used = time;
    if (how == use::read) continue;
    g.changed = true;
    g.saved = false;
  }
  return true;
}

bool host_memory::in_memory(const region& r, byte_range bytes) {
  if (r.on_host.empty() || bytes.empty()) return true;
  const auto run = granules_of(bytes);
  for (std::uint64_t n = run.begin; n < run.end; ++n)
    if (!r.on_host[n].in_memory()) return false;
  return true;
}

bool host_memory::saved(const region& r, std::uint64_t block) {
  if (r.on_host.empty() || r.degraded) return false;
  const host_granule& g = r.on_host[r.bytes_of({block, block + 1}).begin / granule_size];
  return g.saved || g.where == place::leaving;
}

void host_memory::bring(const region_range& bytes, state_test is, bool beyond) {
  if (!limited() || bytes.range.empty()) return;
  const auto run = granules_of(bytes.range);
  readers_.for_each(run.end - run.begin,
                    [&](std::uint64_t n) { bring_granule(*bytes.region, run.begin + n, is, beyond); });
}

std::vector<byte_range> host_memory::valid_parts(const region& r, std::uint64_t granule, state_test is) {
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

void host_memory::read(const region& r, std::uint64_t granule, std::uint32_t extent,
                       const std::vector<byte_range>& parts) {
  for (const byte_range& part : parts) {
    const trace::recorded here(trace::category::file, "read from the spill file", part.size());
    file_->read(extent, part.begin - granule * granule_size, space_.alias(r.layout.base + part.begin), part.size());
    counters::add(count_.bytes_unspilled, part.size());
  }
}

void host_memory::bring_granule(region& r, std::uint64_t granule, state_test is, bool beyond) {
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
        g.where = place::memory;
        g.used = now();
        return;
      }
      if (g.where != place::arriving) bytes = bytes_of(r, granule).size();
    }
    if (bytes == 0) {  // another thread is reading the granule from the spill file
      wait_for_transfers(r);
      continue;
    }
    reserve(bytes, beyond);
    std::vector<byte_range> parts;
    std::uint32_t extent = host_granule::no_extent;
    std::uint64_t transfer = 0;
    {
      const lock_guard lock(r.mutex);
      r.mutex.assert_held();
      const bool still = needed() && !r.on_host[granule].counts();
      if (!still) {
        release(bytes);
        continue;
      }
      host_granule& g = r.on_host[granule];
      g.used = now();
      if (g.where == place::nowhere) {
        g.where = place::memory;
        return;
      }
      parts = valid_parts(r, granule, has_host_copy);
      begin_transfer(r, g);
      g.where = place::arriving;
      extent = g.extent;
      transfer = g.transfer;
    }
    const auto finish = [&](place where) {
      const lock_guard lock(r.mutex);
      r.mutex.assert_held();
      if (!r.alive || granule >= r.on_host.size()) return;
      host_granule& g = r.on_host[granule];
      if (g.where != place::arriving || g.transfer != transfer) return;
      g.where = where;
      if (where == place::file) release(bytes);
    };
    try {
      read(r, granule, extent, parts);
    } catch (...) {
      end_transfer(r);
      finish(place::file);
      throw;
    }
    end_transfer(r);
    finish(place::memory);
    return;
  }
}

void host_memory::bring_all(region& r) {
  if (r.on_host.empty()) return;
  wait_for_transfers(r);  // transfers end without locking a region's mutex
  for (std::uint64_t n = 0; n < r.on_host.size(); ++n) {
    host_granule& g = r.on_host[n];
    if (!g.counts()) {
      const lock_guard lock(mutex_);
      taken_ += bytes_of(r, n).size();
      search_ = search::wanted;
    }
    if (g.where == place::file || g.where == place::arriving) {
      try {
        read(r, n, g.extent, valid_parts(r, n, has_host_copy));
      } catch (...) {
        if (!g.counts()) release(bytes_of(r, n).size());
        throw;
      }
    }
    g.where = place::memory;
    g.used = now();
    g.changed = true;
    g.saved = false;
  }
  for_room_.notify_one();
}

void host_memory::begin_transfer(region& r, host_granule& g) {
  static std::atomic<std::uint64_t> numbers{0};
  g.transfer = numbers.fetch_add(1, std::memory_order_relaxed) + 1;
  const lock_guard lock(mutex_);
  ++transfers_[r.id];
}

void host_memory::end_transfer(const region& r) noexcept {
  {
    const lock_guard lock(mutex_);
    const auto its = transfers_.find(r.id);
    if (--its->second == 0) transfers_.erase(its);
  }
  changed_.notify_all();
}

void host_memory::wait_for_transfers(const region& r) noexcept {
  unique_lock lock(mutex_);
  changed_.wait(lock, [&]() HPE_REQUIRES(mutex_) { return !transfers_.contains(r.id); });
}

bool host_memory::try_reserve(std::uint64_t bytes) {
  const lock_guard lock(mutex_);
  if (served_ != asked_ || taken_ + bytes > limit_) return false;
  taken_ += bytes;
  search_ = search::wanted;
  if (shortage() != 0) for_room_.notify_one();
  return true;
}

void host_memory::reserve(std::uint64_t bytes, bool beyond) {
  const trace::recorded here(trace::category::call, "wait for host memory", bytes);
  unique_lock lock(mutex_);
  const std::uint64_t mine = asked_++;
  wanted_ += bytes;
  search_ = search::wanted;
  for_room_.notify_one();
  const auto fits = [&]() HPE_REQUIRES(mutex_) { return taken_ + bytes <= limit_; };
  changed_.wait(lock,
                [&]() HPE_REQUIRES(mutex_) { return served_ == mine && (fits() || search_ == search::all_stuck); });
  const bool fit = fits();
  ++served_;
  wanted_ -= bytes;
  search_ = search::wanted;  // for the next thread that waits
  for_room_.notify_one();
  changed_.notify_all();
  if (!fit) {
    const std::string sentence = fmt::format(
        "{} more bytes of host memory are needed, {} of {} (HPE_HOST_MEMORY) are taken, and no data can make room: {}",
        bytes, taken_, limit_, why_all_stuck_);
    if (!beyond) HPE_THROW(HPE_ERROR_OUT_OF_MEMORY, "{}", sentence);
    if (!std::exchange(warned_, true))
      log(log_level::warn, "{}; from now on, memory that CPU code touches exceeds the limit", sentence);
  }
  taken_ += bytes;
}

void host_memory::release(std::uint64_t bytes) noexcept {
  if (bytes == 0) return;
  {
    const lock_guard lock(mutex_);
    taken_ -= bytes;
    search_ = search::wanted;
  }
  changed_.notify_all();
}

void host_memory::take(std::uint64_t bytes) {
  if (!limited() || bytes == 0) return;
  const std::uint64_t most = limit_ / 4 * 3;
  const auto require_allowed = [&]() HPE_REQUIRES(mutex_) {
    HPE_REQUIRE(
        kept_ + bytes <= most, HPE_ERROR_OUT_OF_MEMORY,
        "{} bytes of host memory were asked for, and {} are allocated; their sum may be at most {}, three quarters "
        "of {} (HPE_HOST_MEMORY), because other data passes through the rest",
        bytes, kept_, most, limit_);
  };
  {
    const lock_guard lock(mutex_);
    require_allowed();
  }
  reserve(bytes, false);
  try {
    const lock_guard lock(mutex_);
    require_allowed();  // other threads may have allocated meanwhile
    kept_ += bytes;
  } catch (...) {
    release(bytes);
    throw;
  }
}

void host_memory::give_back(std::uint64_t bytes) noexcept {
  if (!limited() || bytes == 0) return;
  {
    const lock_guard lock(mutex_);
    kept_ -= bytes;
  }
  release(bytes);
}

}  // namespace hpe::work
