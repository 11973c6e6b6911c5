// The invariants of residency.cpp hold here.
#include "runtime/work/eviction.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <new>
#include <tuple>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"
#include "runtime/base/log.h"
#include "runtime/trace/recorder.h"
#include "runtime/work/host_spill.h"

namespace hpe::work {

using coherence::block_event;
using coherence::block_run;
using coherence::block_state;
using coherence::byte_range;
using coherence::mapped_range;
using coherence::point_set;
using coherence::region;
using coherence::resident_piece;
using device::backing_kind;

namespace {

// Data is copied to the host before its device memory is needed, so that these copies overlap uploads: an eighth of the
// device's memory in advance, but at most most_copied_ahead bytes.
constexpr std::uint64_t part_copied_ahead = 8;
constexpr std::uint64_t most_copied_ahead = std::uint64_t{512} << 20;
// The eviction of bytes that only the device has costs two copies, to the host and later back to the device. The
// eviction of other bytes costs only the copy back.
constexpr std::uint64_t cost_of_clean = 1;
constexpr std::uint64_t cost_of_dirty = 2;
// In a cycle, data that can be evicted without a wait goes first, unless its next use is less than a fourth as far away
// as the furthest next use. Otherwise the uploads of a thread that queues work far ahead of the device would wait for
// that work.
constexpr std::uint64_t part_of_furthest = 4;
// In one stop of a device's work, data for the next steps moves to device memory, at most this part of the memory.
constexpr std::uint64_t part_at_once = 16;
constexpr std::uint64_t most_at_once = std::uint64_t{512} << 20;

bool only_at_home(block_state s) noexcept { return s == block_state::device || s == block_state::fetching; }

// Whether the bytes were written after the work `writers`.
bool written_after(const region& r, byte_range bytes, const point_set& writers) HPE_REQUIRES(r.mutex) {
  point_set now;
  r.order.before_read(bytes, now);
  return !std::ranges::all_of(now.points(), [&](timepoint p) {
    return std::ranges::any_of(writers.points(),
                               [&](timepoint q) { return q.timeline == p.timeline && q.value >= p.value; });
  });
}

// Whether an earlier copy of the bytes to the host is up to date.
bool still_good(const region& r, byte_range bytes, const coherence::copy_out& copy) HPE_REQUIRES(r.mutex) {
  return !copy.outdated && !written_after(r, bytes, copy.writers);
}

}  // namespace

eviction::eviction(const resources& with, coherence::region_table& regions, sharing& others, counters& count)
    : with_(with),
      regions_(regions),
      sharing_(others),
      count_(count),
      fingerprints_(with.devices, log_level::info, "hpe copies data to the host even if kernels have not changed it"),
      zero_copy_(with, others, fingerprints_, count) {
  for (unsigned d = 0; d < with.devices.size(); ++d) recent_.push_back(std::make_unique<recent_work>());
}

void eviction::note_step(std::span<const device_access> accesses) noexcept try {
  std::uint64_t homes = 0;
  for (const device_access& access : accesses) {
    if (access.unsure && !unsure_.load(std::memory_order_relaxed)) unsure_ = true;
    if (!access.region->single_copy() && !access.only_mapped) homes |= access.region->home_set();
  }
  for (; homes != 0; homes &= homes - 1) {
    const auto home = static_cast<unsigned>(std::countr_zero(homes));
    recent_work& recent = *recent_[home];
    const lock_guard lock(recent.mutex);
    for (const device_access& access : accesses)
      if ((access.region->home_set() >> home & 1) != 0 && !access.region->single_copy() && !access.only_mapped)
        recent.steps.use(access.region->id, access.range, access.mode != HPE_OUT);
    recent.steps.end_step();
    recent.predicts.store(recent.steps.period() != 0, std::memory_order_relaxed);
  }
} catch (const std::bad_alloc&) {
  // If there is no memory to record steps, no cycle is recognised.
}

// With HPE_HOST_MEMORY, the host's copy of bytes that the device may have written can leave host memory.
void eviction::note_piece(region& r, std::uint64_t begin) {
  if (!unsure_.load(std::memory_order_relaxed) || with_.host.limited() || r.degraded) return;
  const auto piece = r.resident.all().find(begin);
  const byte_range range{begin, std::min(piece->second.end, r.layout.extent)};
  const auto has_one_copy = [](block_state s) noexcept { return s != block_state::shared; };
  if (range.empty() || piece->second.value.zero_copy || any_block(r, range, has_one_copy)) return;
  if (auto made = fingerprints_.take(piece->second.value.home, r, range))
    r.resident.set_fingerprint(begin, std::move(*made));
}

std::uint64_t eviction::steps(unsigned home) const {
  recent_work& recent = *recent_[home];
  const lock_guard lock(recent.mutex);
  return recent.steps.steps();
}

std::uint64_t eviction::period(unsigned home) const {
  recent_work& recent = *recent_[home];
  const lock_guard lock(recent.mutex);
  return recent.steps.period();
}

std::optional<coherence::use_cycle::predicted_use> eviction::upcoming(unsigned home) const {
  recent_work& recent = *recent_[home];
  const lock_guard lock(recent.mutex);
  return recent.steps.upcoming();
}

void eviction::pass_upcoming(unsigned home) {
  recent_work& recent = *recent_[home];
  const lock_guard lock(recent.mutex);
  recent.steps.pass();
}

bool eviction::any_block(const region& r, byte_range bytes, bool (*is)(block_state) noexcept) {
  const block_run run = r.blocks_of({bytes.begin, std::min(bytes.end, r.layout.extent)});
  for (std::uint64_t b = run.begin; b < run.end; ++b)
    if (is(r.state(b))) return true;
  return false;
}

bool eviction::needs_copy(const region& r, byte_range bytes) const {
  const auto piece = r.resident.all().find(bytes.begin);
  if (piece == r.resident.all().end()) return false;
  const auto& copied = piece->second.value.copied;
  return !(copied && still_good(r, bytes, *copied)) && any_block(r, bytes, only_at_home) &&
         compare(r, bytes.begin) != comparison::same;
}

eviction::comparison eviction::compare(const region& r, std::uint64_t begin) const {
  const auto& piece = r.resident.all().find(begin)->second;
  const auto& [before, now] = std::tie(piece.value.on_host, piece.value.latest);
  if (!before) return comparison::different;
  if (!now || written_after(r, {begin, std::min(piece.end, r.layout.extent)}, now->writers)) return comparison::unknown;
  if (!reached(std::array{before->computed, now->computed}, with_.devices)) return comparison::unknown;
  return fingerprints_.are_same(*before, *now) ? comparison::same : comparison::different;
}

eviction::progress eviction::progress_of(const region& r, byte_range piece) const {
  const resident_piece& its = r.resident.all().find(piece.begin)->second.value;
  const auto is_own = [&](timepoint user) {
    const auto& copied = its.copied;
    return (copied && !copied->outdated && std::ranges::find(copied->copies, user) != copied->copies.end()) ||
           (its.on_host && its.on_host->computed == user) || (its.latest && its.latest->computed == user);
  };
  point_set users;
  r.order.before_write(piece, users);  // copies to the host and fingerprints count as readers
  bool is_copying = false;
  for (const timepoint user : users.points()) {
    if (with_.devices.reached(user)) continue;
    if (!is_own(user)) return progress::in_use;
    is_copying = true;
  }
  if (is_copying) return progress::copying;
  return needs_copy(r, piece) ? progress::idle : progress::ready;
}

std::uint64_t eviction::supply::spare() const {
  return std::min({std::uint64_t{of_.with_.devices.at(home_).info().memory_bytes} / part_copied_ahead,
                   most_copied_ahead, of_.with_.host.most_at_once()});
}

void eviction::supply::copy_ahead() {
  if (of_.keeps_mapped()) return;
  std::erase_if(comparing_, [&](std::size_t n) { return n < next_ || copy_ahead(order_[n]); });
  for (; copied_ < order_.size() && ahead_ < wanted_ + spare(); ++copied_) {
    ahead_ += order_[copied_].range.size();
    if (!copy_ahead(order_[copied_])) comparing_.push_back(copied_);
  }
}

// The copies of a device run in the order in which they were queued. In a cycle, a copy that must wait for work in the
// far future would delay the other copies, so hpe queues none. If pages are missing, evict tries again.
bool eviction::supply::copy_ahead(const candidate& c) {
  if (c.is == progress::in_use && of_.predicts(home_)) return true;
  const lock_guard lock(c.region->mutex);
  c.region->mutex.assert_held();
  const auto& pieces = c.region->resident.all();
  const auto piece = pieces.find(c.range.begin);
  return !c.region->alive || c.region->degraded || piece == pieces.end() || piece->first != c.range.begin ||
         of_.copy_out(*c.region, c.range.begin) != copy_out_result::comparing;
}

bool eviction::supply::look_for_candidates() {
  order_ = of_.candidates(home_, now_, wanted_, spare());
  next_ = copied_ = 0;
  ahead_ = 0;
  comparing_.clear();
  return !order_.empty();
}

std::uint64_t eviction::supply::evict_next() {
  const candidate& c = order_[next_++];
  ahead_ -= std::min(ahead_, c.range.size());
  std::uint64_t got = 0;
  try {
    got = of_.evict(*c.region, c.range, home_);
  } catch (const error& e) {
    // Host memory may be too short for the copy of this piece. Other pieces may need no copy.
    if (e.status() != HPE_ERROR_OUT_OF_MEMORY || next_ == order_.size()) throw;
  }
  wanted_ -= std::min(wanted_, got);
  return got;
}

std::uint64_t eviction::supply::free(std::uint64_t bytes) {
  of_.has_begun_.store(true);
  std::uint64_t freed = 0;
  while (freed < bytes) {
    if (next_ == order_.size() && !look_for_candidates()) break;
    if (of_.keeps_mapped()) {
      std::vector<zero_copy_memory::piece> group;
      add_leaving(group, bytes - freed);
      try {
        freed += move(group);
      } catch (const error& e) {
        // Other pieces may need no host memory.
        if (e.status() != HPE_ERROR_OUT_OF_MEMORY || next_ == order_.size()) throw;
      }
    } else {
      copy_ahead();
      freed += evict_next();
    }
  }
  return freed;
}

void eviction::supply::add_upcoming(std::vector<zero_copy_memory::piece>& pieces) {
  const std::uint64_t most =
      std::min<std::uint64_t>(of_.with_.devices.at(home_).info().memory_bytes / part_at_once, most_at_once);
  if (!of_.predicts(home_) || most < granule_size) return;
  std::uint64_t in = 0;
  for (const zero_copy_memory::piece& p : pieces) in += p.range.size();
  const std::uint64_t end = in + most;
  wanted_ += most;
  look_for_candidates();
  std::size_t leaving = 0;  // the piece that leaves for the next piece, and the bytes of the pieces before it
  for (std::uint64_t out = 0; in < end; of_.pass_upcoming(home_)) {
    const auto use = of_.upcoming(home_);
    if (!use) return;
    region& r = of_.regions_.at(use->region);
    const lock_guard lock(r.mutex);
    if (!r.alive || (r.home_set() >> home_ & 1) == 0) continue;
    auto& there = r.resident.all();
    for (auto at = there.from(use->bytes.begin); at != there.end() && at->first < use->bytes.end; ++at) {
      resident_piece& its = at->second.value;
      if (!its.zero_copy || its.home != home_ || its.used == now_) continue;
      while (leaving < order_.size() && out + order_[leaving].range.size() <= in) out += order_[leaving++].range.size();
      if (leaving == order_.size() || order_[leaving].age <= use->steps) return;
      its.used = now_;
      pieces.push_back({&r, {at->first, at->second.end}, backing_kind::device, use->steps});
      in += pieces.back().range.size();
    }
  }
}

void eviction::supply::add_leaving(std::vector<zero_copy_memory::piece>& group, std::uint64_t bytes) {
  if (bytes == 0 || (next_ == order_.size() && !look_for_candidates())) return;
  for (std::uint64_t sum = 0; sum < bytes && next_ < order_.size(); ++next_) {
    group.push_back({order_[next_].region, order_[next_].range, backing_kind::zero_copy});
    sum += order_[next_].range.size();
  }
}

std::uint64_t eviction::supply::move(std::span<zero_copy_memory::piece> group) {
  std::uint64_t freed = of_.zero_copy_.move(group, home_);
  for (const zero_copy_memory::piece& p : group) {
    if (p.to != backing_kind::zero_copy || p.has_moved) continue;
    if (!p.is_movable)
      freed += of_.evict_to_shadow(*p.region, p.range.begin, home_);
    else if (p.lacks_host_memory)  // pieces that have come in may have given host memory back
      freed += of_.evict(*p.region, p.range, home_);
  }
  wanted_ -= std::min(wanted_, freed);
  return freed;
}

bool eviction::supply::bring_in(std::vector<zero_copy_memory::piece>& pieces) {
  add_upcoming(pieces);
  return of_.zero_copy_.bring_in(pieces, home_, *this);
}

bool eviction::supply::is_at_hand() {
  if (next_ == order_.size() && !look_for_candidates()) return false;
  copy_ahead();
  const candidate& c = order_[next_];
  const lock_guard lock(c.region->mutex);
  c.region->mutex.assert_held();
  const auto piece = c.region->resident.all().find(c.range.begin);
  return !c.region->alive || piece == c.region->resident.all().end() || piece->first != c.range.begin ||
         of_.progress_of(*c.region, {c.range.begin, std::min(c.range.end, c.region->layout.extent)}) == progress::ready;
}

std::uint64_t eviction::supply::free_at_once(std::uint64_t bytes, std::uint64_t steps) {
  std::uint64_t freed = 0;
  if (order_.empty()) look_for_candidates();
  copy_ahead();
  while (freed < bytes && next_ < order_.size() && order_[next_].is == progress::ready && order_[next_].age > steps)
    freed += evict_next();
  return freed;
}

std::vector<eviction::candidate> eviction::all_candidates(unsigned home, std::uint64_t now, bool& has_cycle) const {
  recent_work& recent = *recent_[home];
  std::uint64_t cycle = 0;
  {
    const lock_guard lock(recent.mutex);
    cycle = recent.steps.period();
  }
  has_cycle = cycle != 0;
  std::vector<candidate> result;
  std::vector<coherence::use_cycle::next_use> next;
  for (std::uint32_t number = 1; number < regions_.limit(); ++number) {
    region& r = regions_.at(number);
    const lock_guard lock(r.mutex);
    if (!r.alive || (r.home_set() >> home & 1) == 0 || r.single_copy() || r.acquired != 0) continue;
    const std::size_t first = result.size();
    next.clear();
    for (const auto& [begin, piece] : r.resident.all()) {
      const byte_range range{begin, piece.end};
      if (piece.value.home != home || piece.value.zero_copy || piece.value.used == now || sharing_.holds(r, range))
        continue;
      result.push_back({&r, range, piece.value.used, now - piece.value.used});
      if (has_cycle && !keeps_mapped())
        result.back().is = progress_of(r, {begin, std::min(piece.end, r.layout.extent)});
      if (has_cycle) next.push_back({range});
    }
    if (next.empty()) continue;
    {
      const lock_guard of_steps(recent.mutex);
      // Other threads may have added steps, after which no cycle is known.
      if (recent.steps.period() != 0) recent.steps.find_next_uses(r.id, next);
    }
    for (std::size_t n = 0; n < next.size(); ++n) {
      std::uint64_t& age = result[first + n].age;
      age = next[n].steps != 0 ? next[n].steps : age + cycle;
    }
  }
  return result;
}

std::uint64_t eviction::free_zero_copy(unsigned home, std::uint64_t now, std::uint64_t bytes) {
  std::vector<candidate> all;
  for (std::uint32_t number = 1; number < regions_.limit(); ++number) {
    region& r = regions_.at(number);
    const lock_guard lock(r.mutex);
    if (!r.alive) continue;
    for (const auto& [begin, piece] : r.resident.all())
      if (piece.value.zero_copy && piece.value.home == home && piece.value.used != now)
        all.push_back({&r, {begin, piece.end}, piece.value.used, now - piece.value.used});
  }
  std::ranges::stable_sort(all, std::greater(), &candidate::age);
  std::uint64_t freed = 0;
  for (const candidate& c : all)
    if (freed < bytes) freed += evict_to_shadow(*c.region, c.range.begin, home);
  return freed;
}

std::uint64_t eviction::zero_copy_bytes() const {
  std::uint64_t sum = 0;
  for (std::uint32_t number = 1; number < regions_.limit(); ++number) {
    const region& r = regions_.at(number);
    const lock_guard lock(r.mutex);
    if (!r.alive || !r.resident.has_zero_copy(r.whole())) continue;
    for (const auto& [begin, piece] : r.resident.all())
      if (piece.value.zero_copy) sum += piece.end - begin;
  }
  return sum;
}

namespace {

/// Removes the pieces that the latest work used, and then the pieces of earlier work as long as the sum is at most
/// `bytes` bytes. Returns the removed pieces, the least recently used first.
template <class Candidate>
std::vector<Candidate> take_latest(std::vector<Candidate>& from, std::uint64_t bytes) {
  std::ranges::stable_sort(from, std::less(), &Candidate::used);
  auto first = from.end();
  for (std::uint64_t sum = 0; first != from.begin();) {
    const auto of_one_step =
        std::ranges::lower_bound(from.begin(), first, std::prev(first)->used, {}, &Candidate::used);
    for (auto at = of_one_step; at != first; ++at) sum += at->range.size();
    if (sum > bytes && first != from.end()) break;
    first = of_one_step;
  }
  std::vector<Candidate> latest(first, from.end());
  from.erase(first, from.end());
  return latest;
}

}  // namespace

// Prefers the data whose last use is longest ago or, in a cycle, whose next use is furthest away. The age of data whose
// eviction costs two copies counts half. In a cycle, data that no queued work uses comes first.
std::vector<eviction::candidate> eviction::candidates(unsigned home, std::uint64_t now, std::uint64_t wanted,
                                                      std::uint64_t spare) const {
  const auto older = [](const candidate& a, const candidate& b) { return a.age > b.age; };
  const auto cut = [](std::vector<candidate>& all, std::uint64_t bytes) {
    std::uint64_t sum = 0;
    const auto last = std::ranges::find_if(all, [&](const candidate& c) { return (sum += c.range.size()) >= bytes; });
    if (last != all.end()) all.erase(last + 1, all.end());
    return sum;
  };
  bool has_cycle = false;
  std::vector<candidate> others = all_candidates(home, now, has_cycle);
  if (keeps_mapped()) {  // these pieces leave when the queued work has ended, and while others come in
    std::ranges::stable_sort(others, older);
    cut(others, 2 * (wanted + spare));
    return others;
  }
  std::vector<candidate> result;
  // The latest work may be running. In a cycle, the next use of its data is furthest away, but other data is at hand
  // sooner.
  std::vector<candidate> latest;
  if (has_cycle) {
    const auto furthest = std::ranges::max_element(others, {}, &candidate::age);
    const std::uint64_t least = furthest == others.end() ? 0 : furthest->age / part_of_furthest;
    const auto behind = std::stable_partition(
        others.begin(), others.end(), [&](const candidate& c) { return c.is != progress::in_use && c.age >= least; });
    result.assign(others.begin(), behind);
    others.erase(others.begin(), behind);
    std::ranges::stable_sort(result,
                             [&](const auto& a, const auto& b) { return a.is != b.is ? a.is < b.is : older(a, b); });
    latest = take_latest(others, spare);
  }
  const std::uint64_t enough = 2 * (wanted + spare);
  const std::uint64_t found = cut(result, enough);
  if (found >= enough) return result;
  std::ranges::stable_sort(others, older);
  cut(others, enough - found);
  for (candidate& c : others) {
    region& r = *c.region;
    const lock_guard lock(r.mutex);
    if (r.alive && needs_copy(r, c.range)) c.age = c.age * cost_of_clean / cost_of_dirty;
  }
  std::ranges::stable_sort(others, older);
  result.insert(result.end(), others.begin(), others.end());
  result.insert(result.end(), latest.begin(), latest.end());
  return result;
}

eviction::copy_out_result eviction::copy_out(region& r, std::uint64_t begin) {
  auto& entry = r.resident.all().find(begin)->second;
  const byte_range range{begin, std::min(entry.end, r.layout.extent)};
  resident_piece& piece = entry.value;
  if (piece.copied && still_good(r, range, *piece.copied)) return copy_out_result::copied;
  if (piece.on_host && any_block(r, range, only_at_home)) {
    if (!piece.latest || written_after(r, range, piece.latest->writers))
      piece.latest = fingerprints_.take(piece.home, r, range);
    const comparison found = piece.latest ? compare(r, begin) : comparison::different;
    if (found == comparison::unknown) return copy_out_result::comparing;
    if (found == comparison::same) {
      piece.copied = coherence::copy_out{piece.latest->writers, {}, false};
      return copy_out_result::copied;
    }
  }
  // The copies change the bytes on the host.
  std::optional<coherence::piece_fingerprint> of_copy = std::move(piece.latest);
  r.resident.forget_fingerprints(range);
  const block_run run = r.blocks_of(range);
  for (std::uint64_t b = run.begin; b < run.end; ++b)
    if (only_at_home(r.state(b)) && !with_.host.hold(r, r.bytes_of({b, b + 1}), host_spill::shadow_use::write))
      return copy_out_result::missing_pages;
  // If the queuing of a copy fails, the copies queued before it stay recorded, because the host must not write the
  // bytes that these copies write.
  coherence::copy_out unfinished;
  unfinished.outdated = true;
  coherence::copy_out& made = *(piece.copied = std::move(unfinished));
  r.order.before_read(range, made.writers);
  for (std::uint64_t b = run.begin; b < run.end;) {
    const block_run same = r.blocks().same_from(b, run.end);
    b = same.end;
    if (!only_at_home(r.state(same.begin))) continue;
    // The lane's fetch of these blocks becomes useless. Threads that wait for the fetch post new requests.
    r.transition(same, block_event::fetch_failed);
    const byte_range bytes = r.bytes_of(same);
    made.copies.reserve(made.copies.size() + 1);
    r.use_shadow();
    const timepoint copied =
        with_.engine.evict(piece.home, r.layout.base + bytes.begin, bytes.size(), made.writers.points());
    const device_access access{&r, bytes, HPE_IN};
    record(std::span(&access, 1), std::span(&copied, 1), with_.devices);
    made.copies.push_back(copied);
  }
  made.outdated = false;
  if (of_copy && !written_after(r, range, of_copy->writers)) r.resident.set_fingerprint(begin, std::move(*of_copy));
  return copy_out_result::copied;
}

std::uint64_t eviction::evict(region& r, byte_range piece, unsigned home) {
  has_begun_.store(true);
  zero_copy_memory::piece leaving{&r, piece, device::backing_kind::zero_copy};
  const std::uint64_t moved = keeps_mapped() ? zero_copy_.move(std::span(&leaving, 1), home) : 0;
  return moved != 0 ? moved : evict_to_shadow(r, piece.begin, home);
}

std::uint64_t eviction::evict_to_shadow(region& r, std::uint64_t begin, unsigned home) {
  const trace::recorded here(trace::category::call, "evict");
  bool leaving = false;
  const auto still_there = [&]() HPE_REQUIRES(r.mutex) { return zero_copy_memory::has_piece(r, begin, home); };
  try {
    for (;;) {
      point_set users;
      byte_range range;
      auto copy = copy_out_result::comparing;
      {
        const lock_guard lock(r.mutex);
        r.mutex.assert_held();
        if (!still_there()) return 0;
        const auto& piece = r.resident.all().find(begin)->second;
        range = r.degraded ? byte_range{0, r.bytes_at_homes()} : byte_range{begin, piece.end};
        // An export or a use may have begun since the piece became a candidate.
        if (r.acquired != 0 || sharing_.holds(r, range)) {
          r.resident.set_leaving(begin, false);
          return 0;
        }
        sharing_.forget(with_, r, range);
        if (r.degraded) return evict_all(r, home);
        r.resident.set_leaving(begin, true);
        leaving = true;
        range.end = std::min(range.end, r.layout.extent);
        copy = copy_out(r, begin);
        r.order.before_write(range, users);  // the copies count as readers
        if (copy == copy_out_result::copied && reached(users.points(), with_.devices)) {
          require_success(piece.value.copied->copies, with_.devices);
          const std::uint64_t bytes = piece.end - begin;
          r.transition(r.blocks_of(range), block_event::brought_to_host);
          unmap(r, begin);
          return bytes;
        }
      }
      copy == copy_out_result::missing_pages ? with_.host.bring({&r, range}, only_at_home)
                                             : wait_for(users.points(), with_.devices);
    }
  } catch (...) {
    const lock_guard lock(r.mutex);
    r.mutex.assert_held();
    if (leaving && still_there()) {
      r.resident.set_leaving(begin, false);
      auto& copy = r.resident.all().find(begin)->second.value.copied;
      // Copies that are still running stay recorded, because the host must not write the bytes that these copies write.
      if (copy && reached(copy->copies, with_.devices)) copy.reset();
      r.resident.forget_fingerprints({begin, begin + 1});
    }
    throw;
  }
}

std::uint64_t eviction::evict_all(region& r, unsigned home) {
  bring_to_host(with_, r);
  std::uint64_t freed = 0;
  for (const mapped_range& part : r.resident.mapped()) {
    if (part.home == home) freed += part.range.size();
    unmap(r, part.range.begin);
  }
  return freed;
}

void eviction::unmap(region& r, std::uint64_t begin) {
  const auto piece = r.resident.all().find(begin);
  const std::uint64_t bytes = piece->second.end - begin;
  const unsigned home = piece->second.value.home;
  const bool is_zero_copy = piece->second.value.zero_copy;
  with_.devices.at(home).unmap(r.layout.base + begin, bytes);
  if (is_zero_copy)
    with_.host.give_back(bytes);
  else
    counters::subtract(count_.device_memory[home], bytes);
  counters::add(count_.bytes_evicted, bytes);
  r.resident.remove(begin);
}

}  // namespace hpe::work
