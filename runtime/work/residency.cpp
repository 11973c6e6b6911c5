#include "runtime/work/residency.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/node/device_share.h"
#include "runtime/os/thread.h"
#include "runtime/trace/recorder.h"

// Invariants, under the region's mutex:
//  - A block outside of all pieces is fresh or in state host: no copy from the home is valid or under way there.
//  - A piece is unmapped only when all users in the region's order have finished.

namespace hpe::work {

using coherence::block_run;
using coherence::block_state;
using coherence::byte_range;
using coherence::region;
using coherence::resident_piece;

namespace {

// The number of pieces whose uploads begin together. While these uploads run, the driver maps the next pieces; the
// class device_room says how long the driver takes.
constexpr std::size_t pieces_of_group = 4;
constexpr std::chrono::milliseconds between_looks_at_stopped{50};

bool is_fresh(block_state s) noexcept { return s == block_state::fresh; }

// Returns the bytes around `at` that have no device memory and that get device memory in one piece.
byte_range gap_at(const region& r, std::uint64_t at, std::uint64_t end_of_hole) HPE_REQUIRES(r.mutex) {
  const std::uint64_t piece = r.layout.piece_size;
  std::uint64_t begin = at / piece * piece;
  for (auto it = r.resident.all().from(begin); it != r.resident.all().end() && it->first < at; ++it)
    begin = it->second.end;
  if (r.layout.homes.size() > 1)
    for (std::uint64_t g = begin; g < at; g += granule_size)
      if (r.home_of(g) != r.home_of(at)) begin = g + granule_size;
  const std::uint64_t most = std::min({begin + piece - begin % piece, end_of_hole, r.bytes_at_homes()});
  return {begin, r.end_of_home(begin, most)};
}

template <class Visit>
void for_each_gap(const region& r, byte_range range, const Visit& visit) HPE_REQUIRES(r.mutex) {
  const auto& pieces = r.resident.all();
  for (std::uint64_t at = range.begin / granule_size * granule_size; at < range.end;) {
    const auto next = pieces.from(at);
    if (next != pieces.end() && next->first <= at) {
      at = next->second.end;
      continue;
    }
    const byte_range gap = gap_at(r, at, next == pieces.end() ? r.bytes_at_homes() : next->first);
    visit(gap);
    at = gap.end;
  }
}

}  // namespace

struct residency::plan {
  std::uint64_t now = 0;                     // the time of the use, for resident_piece::used
  std::vector<gap> gaps;                     // by region and offset
  std::map<unsigned, std::uint64_t> needed;  // bytes by device: of pieces that the work names, and of gaps
  std::map<unsigned, std::uint64_t> others;  // like `needed`, of other pieces; only if host memory has a limit
  std::vector<gap> large;                    // large pieces, of which the work may need only a part
  std::vector<gap> on_device;                // pieces in device memory
  std::vector<gap> zero_copies;              // pieces in zero-copy memory
  bool moves = false;                        // whether these pieces need device memory
  bool keeps_others = false;                 // whether the work may also use data that it does not name
};

void residency::turn::begin(residency& at, std::uint64_t devices, std::uint64_t contended) {
  for (const auto& [device, number] : of_process_) contended |= std::uint64_t{1} << device;
  const auto process_has_its_turn = [&](unsigned d) { return (contended >> d & 1) == 0 || of_process_.contains(d); };
  bool has_all = (devices & ~devices_) == 0;
  for (unsigned d = 0; d < at.turns_.size(); ++d) has_all = has_all && process_has_its_turn(d);
  if (has_all) return;
  devices |= devices_;
  end();
  at_ = &at;
  // Wait for the turns of the process first: a thread that waits for such a turn must not lock turns_, because
  // give_back() also locks turns_.
  const auto began = std::chrono::steady_clock::now();
  for (unsigned d = 0; d < at.turns_.size(); ++d)
    if ((contended >> d & 1) != 0) {
      std::uint64_t& number = of_process_[d];  // exists before the turn begins, so that end() always ends the turn
      number = at.devices_.at(d).share()->enter();
    }
  const std::chrono::nanoseconds waited = std::chrono::steady_clock::now() - began;
  if (contended != 0) counters::add(at.count_.turn_wait_ns, static_cast<std::uint64_t>(waited.count()));
  for (unsigned d = 0; d < at.turns_.size(); ++d)
    if ((devices >> d & 1) != 0) at.turns_[d]->lock();
  devices_ = devices;
}

void residency::turn::end() noexcept {
  for (; devices_ != 0; devices_ &= devices_ - 1)
    at_->turns_[static_cast<std::size_t>(std::countr_zero(devices_))]->unlock();
  for (const auto& [device, number] : of_process_) at_->devices_.at(device).share()->leave(number);
  of_process_.clear();
}

residency::residency(device::device_set& devices, transfer::engine& engine, host_view& views,
                     coherence::region_table& regions, host_spill& host, sharing& others, counters& count)
    : devices_(devices),
      engine_(engine),
      views_(views),
      regions_(regions),
      host_(host),
      sharing_(others),
      count_(count),
      room_(devices, count),
      eviction_(with(), regions, others, count),
      fetched_(devices.size()),
      fetcher_(
          devices, regions, eviction_, turns_,
          [this](unsigned home, const auto& use, auto& from) { return fetch(home, use, from); },
          [this](unsigned home) { finish_fetch(home); }) {
  for (unsigned d = 0; d < devices.size(); ++d) turns_.push_back(std::make_unique<mutex>());
  for (unsigned d = 0; d < devices.size(); ++d) {
    node::device_share* const share = devices.at(d).share();
    if (share == nullptr) continue;
    short_ = true;
    servers_.push_back(os::start_thread("hpe share", [this, d, share] {
      share->serve({[this, d](std::uint64_t bytes) { return give_back(d, bytes); }, [this, d] { return is_busy(d); }},
                   ending_);
    }));
  }
}

residency::~residency() {
  ending_ = true;
  for (unsigned d = 0; d < devices_.size(); ++d)
    if (node::device_share* const share = devices_.at(d).share()) share->wake();
  for (std::thread& t : servers_) t.join();
}

byte_range residency::needed(const region& r, byte_range named) {
  return r.degraded ? byte_range{0, r.bytes_at_homes()} : named;
}

void residency::note_step(std::span<const device_access> accesses) noexcept {
  if (!short_.load(std::memory_order_relaxed)) return;
  eviction_.note_step(accesses);
  fetcher_.note_step();
}

bool residency::has(std::span<const device_access> accesses, place allowed) {
  const bool note = short_.load(std::memory_order_relaxed);
  const std::uint64_t now = note ? clock_.fetch_add(1) + 1 : 0;
  std::uint64_t homes = 0;
  for (const device_access& access : accesses) {
    access.region->mutex.assert_held();
    if (access.region->single_copy()) continue;
    homes |= access.region->home_set();
    const byte_range range = needed(*access.region, access.range);
    if (!access.region->resident.usable(range) || needs_file(access)) return false;
    if (access.only_mapped) {
      if (eviction_.has_begun()) eviction_.keep_mapped();
      continue;
    }
    if (allowed == place::device_memory && access.region->resident.has_zero_copy(range)) return false;
    if (note) access.region->resident.use(range, now);
  }
  if (!servers_.empty())
    for (; homes != 0; homes &= homes - 1)
      if (node::device_share* const share = devices_.at(static_cast<unsigned>(std::countr_zero(homes))).share())
        share->use();
  return true;
}

std::uint64_t residency::homes_of(std::span<const device_access> accesses) {
  std::uint64_t homes = 0;
  for (const device_access& access : accesses) {
    const lock_guard lock(access.region->mutex);
    homes |= access.region->home_set();
  }
  return homes;
}

residency::plan residency::make_plan(std::span<const device_access> accesses, std::uint64_t now) const {
  plan result;
  result.now = now;
  for (const device_access& access : accesses) {
    region& r = *access.region;
    const lock_guard lock(r.mutex);
    if (!r.alive || r.single_copy() || access.range.end > r.layout.extent) continue;
    const byte_range range = needed(r, access.range);
    auto& pieces = r.resident.all();
    const bool counts = !access.only_mapped || host_.limited();
    for (auto at = pieces.from(range.begin); counts && at != pieces.end() && at->first < range.end; ++at) {
      resident_piece& piece = at->second.value;
      const std::uint64_t bytes = at->second.end - at->first;
      if (access.only_mapped) result.others[piece.home] += bytes;
      if (access.only_mapped || piece.used == now)
        continue;  // only counted, or another access of this plan uses it too
      piece.used = now;
      result.needed[piece.home] += bytes;
      (piece.zero_copy ? result.zero_copies : result.on_device)
          .push_back({&r, {at->first, at->second.end}, piece.home, {}, false, r.layout.bytes});
      if (!piece.zero_copy && bytes > r.layout.piece_size && !r.degraded &&
          !sharing_.holds(r, {at->first, at->second.end}))
        result.large.push_back(result.on_device.back());
    }
    for_each_gap(r, range, [&](byte_range hole) {
      gap g{&r, hole, r.home_of(hole.begin), {}, access.mode != HPE_IN, r.layout.bytes};
      if (access.mode != HPE_OUT) g.read = {std::max(hole.begin, range.begin), std::min(hole.end, range.end)};
      const auto same = std::ranges::find_if(
          result.gaps, [&](const gap& other) { return other.region == &r && other.range.begin == hole.begin; });
      if (same == result.gaps.end()) {
        result.needed[g.home] += hole.size();
        result.gaps.push_back(g);
        return;
      }
      same->write = same->write || g.write;
      if (g.read.empty()) return;
      same->read = same->read.empty()
                       ? g.read
                       : byte_range{std::min(same->read.begin, g.read.begin), std::max(same->read.end, g.read.end)};
    });
  }
  return result;
}

residency::plan residency::make_fitting_plan(std::span<const device_access> accesses, place allowed) {
  for (bool settled = false, ordered = false;;) {
    plan what = make_plan(accesses, clock_.fetch_add(1) + 1);
    auto home =
        std::ranges::find_if(what.needed, [&](const auto& needed) { return needed.second > most_of(needed.first); });
    if (home == what.needed.end() && what.zero_copies.empty()) return what;
    if (home == what.needed.end())
      home = std::ranges::find_if(what.needed,
                                  [&](const auto& needed) { return needed.second > room_.most_now(needed.first); });
    if (home == what.needed.end() && eviction_.keeps_mapped()) {
      what.moves = true;
      return what;
    }
    if (home == what.needed.end()) {
      std::uint64_t freed = 0;
      for (const gap& piece : what.zero_copies) freed += eviction_.evict(*piece.region, piece.range, piece.home);
      if (freed > 0 || sharing_.settle()) continue;
      room_.throw_full(what.zero_copies.front().home, what.zero_copies.front().range.size());
    }
    if (what.large.empty() && !std::exchange(settled, true) && sharing_.settle()) continue;
    if (what.large.empty() && allowed == place::zero_copy_too) {
      std::ranges::stable_sort(what.gaps, {}, &gap::region_bytes);
      if (!std::exchange(ordered, true) && make_room_for_smaller(what)) continue;
      return what;
    }
    if (what.large.empty()) room_.throw_too_large(home->first, home->second, accesses);
    // Afterwards, the parts that the work needs are brought in again in small pieces.
    const gap& large = what.large.front();
    eviction_.evict(*large.region, large.range, large.home);
  }
}

bool residency::make_room_for_smaller(const plan& what) {
  std::map<unsigned, std::uint64_t> wanted;  // bytes of gaps that no device memory is free for, by device
  std::map<unsigned, std::uint64_t> largest;
  for (const gap& piece : what.on_device) largest[piece.home] = std::max(largest[piece.home], piece.region_bytes);
  for (const gap& g : what.gaps)
    if (largest.contains(g.home) && g.region_bytes < largest[g.home]) wanted[g.home] += g.range.size();
  for (auto& [home, bytes] : wanted) bytes -= std::min<std::uint64_t>(bytes, devices_.at(home).memory().free);
  std::uint64_t freed = 0;
  for (const gap& piece : what.on_device) {
    std::uint64_t& missing = wanted[piece.home];
    if (missing == 0 || piece.region_bytes < largest[piece.home]) continue;
    const std::uint64_t got = eviction_.evict(*piece.region, piece.range, piece.home);
    missing -= std::min(missing, got);
    freed += got;
  }
  return freed > 0;
}

void residency::bring_in(std::span<const device_access> accesses, place allowed, turn& mine) {
  const auto began = std::chrono::steady_clock::now();
  short_ = true;
  const std::uint64_t homes = homes_of(accesses);
  std::vector<device_access> named(accesses.begin(), accesses.end()), others;
  std::erase_if(named, [&](const device_access& a) { return a.only_mapped && (others.push_back(a), true); });
  for (std::uint64_t contended = 0;;) {
    mine.begin(*this, homes, contended);
    require_addresses(accesses, allowed);
    plan what = make_fitting_plan(named, allowed);
    what.keeps_others = !others.empty();
    const progress made = fill_all(what, allowed, mine);
    if (made.what == outcome::done) break;
    mine.end();
    contended |= std::uint64_t{1} << made.home;
    if (made.what == outcome::contended) continue;
    if (std::chrono::steady_clock::now() > began + devices_.at(made.home).share()->patience())
      room_.throw_full(made.home, what.needed.at(made.home));
    // The thread has no turn during this pause, so that other processes can continue.
    std::this_thread::sleep_for(between_looks_at_stopped);
  }
  map_rest(others);
  for (const device_access& access : accesses) upload_from_file(with(), access);
  const auto took = std::chrono::steady_clock::now() - began;
  counters::add(count_.evicting_ns, static_cast<std::uint64_t>(std::chrono::nanoseconds(took).count()));
}

void residency::require_addresses(std::span<const device_access> accesses, place allowed) {
  const bool keeps_others = std::ranges::any_of(accesses, &device_access::only_mapped);
  if (!host_.limited() || (!keeps_others && allowed == place::device_memory)) return;
  for (;;) {
    const std::uint64_t ended = changes_ended_.load();
    plan what = make_plan(accesses, clock_.fetch_add(1) + 1);
    for (const auto& [home, bytes] : what.others) what.needed[home] += bytes;
    std::uint64_t all = 0, on_devices = 0;
    for (const auto& [home, bytes] : what.needed) {
      all += bytes;
      on_devices += std::min(bytes, room_.most_now(home));
    }
    const std::uint64_t on_host = host_.most_to_take() + eviction_.zero_copy_bytes();
    if (all <= on_devices + on_host) return;
    if (wait_for_change(ended)) continue;
    HPE_THROW(HPE_ERROR_OUT_OF_MEMORY,
              "the work needs {} bytes in memory at once, but the devices hold only {} of them, and HPE_HOST_MEMORY "
              "leaves {} bytes for the rest, {} too few: {}",
              all, on_devices, on_host, all - on_devices - on_host, how_to_need_less(accesses));
  }
}

void residency::map_rest(std::span<const device_access> accesses) {
  plan rest = make_plan(accesses, clock_.fetch_add(1) + 1);
  rest.keeps_others = true;
  std::erase_if(rest.gaps, [&](const gap& g) { return !map(g, rest.now) && (fill_with_zero_copy(g, rest), true); });
  upload(rest.gaps);
}

residency::outcome residency::make_room(eviction::supply& from, const gap& g, std::uint64_t missing, const turn& mine,
                                        std::uint64_t ended) {
  using reply = node::device_share::reply;
  const std::uint64_t bytes = g.range.size();
  node::device_share* const share = devices_.at(g.home).share();
  reply others = reply::nothing;
  if (share != nullptr && share->others()) {
    const auto entered = mine.of_process_.find(g.home);
    if (entered == mine.of_process_.end()) return outcome::contended;
    // A GPU's driver may refuse to map memory that is free according to the claims of the processes.
    const std::uint64_t unusable = share->free() >= bytes ? share->free() : 0;
    others = share->ask(entered->second, missing + unusable, bytes + unusable);
    if (others == reply::memory) return outcome::done;
    if (others == reply::lost) return outcome::contended;
  }
  fetcher_.await(g.home);
  if (from.free(bytes) > 0 || (sharing_.settle() && from.free(bytes) > 0)) return outcome::done;
  if (wait_for_change(ended)) return outcome::done;
  if (others == reply::stopped) return outcome::stopped;
  room_.throw_full(g.home, bytes);
}

bool residency::wait_for_change(std::uint64_t ended) const noexcept {
  if (changes_ended_.load() != ended) return true;
  if (changes_begun_.load() == ended) return false;
  changes_ended_.wait(ended);
  return true;
}

std::uint64_t residency::evict(unsigned home, std::uint64_t bytes) {
  const lock_guard lock(*turns_[home]);
  return eviction::supply(eviction_, home, clock_.fetch_add(1) + 1, bytes).free(bytes);
}

std::uint64_t residency::give_back(unsigned home, std::uint64_t bytes) noexcept {
  std::uint64_t given = 0;
  try {
    given = evict(home, bytes);
  } catch (const std::exception& e) {
    log(log_level::warn, "device memory was not given back to another process: {}", e.what());
  }
  counters::add(count_.bytes_given_back, given);
  return given;
}

bool residency::is_busy(unsigned home) const {
  for (std::uint32_t number = 1; number < regions_.limit(); ++number) {
    region& r = regions_.at(number);
    const lock_guard lock(r.mutex);
    if (!r.alive || (r.home_set() >> home & 1) == 0) continue;
    coherence::point_set users;
    r.order.before_write({0, r.layout.extent}, users);
    if (!reached(users.points(), devices_)) return true;
  }
  return false;
}

void residency::start_helpers() noexcept {
  std::call_once(helpers_start_, [&] {
    try {
      helpers_.start("hpe residency", static_cast<unsigned>(devices_.size() - 1));
    } catch (const std::exception& e) {
      log(log_level::info, "data of several devices moves one device after the other: {}", e.what());
    }
  });
}

// Each device gets its memory and uploads in a thread of its own, because such a thread often waits for the device.
residency::progress residency::fill_all(const plan& what, place allowed, const turn& mine) {
  for (const auto& [home, number] : mine.of_process_) devices_.at(home).share()->ask_all_again();
  std::map<unsigned, std::vector<const gap*>> by_home;
  for (const gap& g : what.gaps) by_home[g.home].push_back(&g);
  if (by_home.size() > 1) start_helpers();
  std::vector<progress> made(by_home.size());
  helpers_.for_each(by_home.size(), [&](std::uint64_t n) {
    made[n] = fill(std::next(by_home.begin(), static_cast<std::ptrdiff_t>(n))->second, what, allowed, mine);
  });
  for (const progress& each : made)
    if (each.what != outcome::done) return each;
  return what.moves ? move_in(what, allowed, mine) : progress{};
}

residency::progress residency::fill(std::span<const gap* const> gaps, const plan& of, place allowed, const turn& mine) {
  const unsigned home = gaps.front()->home;
  std::uint64_t missing = 0;
  for (const gap* const g : gaps) missing += g->range.size();
  eviction::supply from(eviction_, home, of.now, missing);
  bool is_full = false;  // no data can make room in the device
  std::vector<gap> group;
  for (const gap* const each : gaps) {
    const gap& g = *each;
    for (std::uint64_t ended = changes_ended_.load(); !map(g, of.now); ended = changes_ended_.load()) {
      if (is_full) {
        fill_with_zero_copy(g, of);
        break;
      }
      if (of.keeps_others) eviction_.keep_mapped();
      if (!group.empty() && !from.is_at_hand()) upload(group);  // the wait for memory overlaps the uploads
      try {
        const outcome got = make_room(from, g, missing, mine, ended);
        if (got == outcome::stopped && allowed == place::zero_copy_too)
          is_full = true;
        else if (got != outcome::done)
          return {got, home};
      } catch (const error& e) {
        if (allowed == place::device_memory || e.status() != HPE_ERROR_OUT_OF_MEMORY) throw;
        is_full = true;
      }
    }
    missing -= g.range.size();
    group.push_back(g);
    if (group.size() == pieces_of_group) upload(group);
  }
  upload(group);
  return {};
}

residency::progress residency::move_in(const plan& what, place allowed, const turn& mine) {
  std::map<unsigned, std::vector<zero_copy_memory::piece>> by_home;
  for (const gap& g : what.zero_copies) by_home[g.home].push_back({g.region, g.range, device::backing_kind::device});
  for (auto& [home, pieces] : by_home) {
    std::uint64_t missing = 0;
    for (const zero_copy_memory::piece& p : pieces) missing += p.range.size();
    eviction::supply from(eviction_, home, what.now, missing);
    for (std::uint64_t ended = changes_ended_.load(); !from.bring_in(pieces); ended = changes_ended_.load()) {
      const gap next{pieces.front().region, pieces.front().range, static_cast<std::uint16_t>(home), {}};
      try {
        const outcome got = make_room(from, next, next.range.size(), mine, ended);
        if (got == outcome::stopped && allowed == place::zero_copy_too) break;
        if (got != outcome::done) return {got, home};
      } catch (const error& e) {
        if (allowed == place::device_memory || e.status() != HPE_ERROR_OUT_OF_MEMORY) throw;
        break;
      }
    }
  }
  return {};
}

bool residency::map(const gap& g, std::uint64_t now) {
  region& r = *g.region;
  const lock_guard lock(r.mutex);
  r.mutex.assert_held();
  if (!is_open(r, g)) return true;
  device::device& home = devices_.at(g.home);
  const std::uint64_t bytes = g.range.size();
  if (const std::size_t spare = home.info().spare_bytes; spare != 0 && home.memory().free < bytes + spare) return false;
  const bool fresh = eviction::any_block(r, g.range, is_fresh);
  try {
    home.map(r.layout.base + g.range.begin, bytes, fresh ? device::contents::zeros : device::contents::any);
  } catch (const error& e) {
    if (e.status() != HPE_ERROR_OUT_OF_MEMORY) throw;
    return false;
  }
  add_piece(r, g, now, device::backing_kind::device);
  counters::add(count_.device_memory[g.home], bytes);
  return true;
}

void residency::fill_with_zero_copy(const gap& g, const plan& of) {
  const std::uint64_t bytes = g.range.size();
  zero_copy_memory::host_bytes taken = eviction_.zero_copy().take(
      g.home, bytes, [&] { return !of.keeps_others && eviction_.free_zero_copy(g.home, of.now, bytes) > 0; });
  region& r = *g.region;
  const lock_guard lock(r.mutex);
  r.mutex.assert_held();
  if (!is_open(r, g)) return;
  const auto first = eviction::any_block(r, g.range, is_fresh) ? device::contents::zeros : device::contents::any;
  try {
    devices_.at(g.home).map(r.layout.base + g.range.begin, bytes, first, device::backing_kind::zero_copy);
  } catch (const error& e) {
    if (e.status() != HPE_ERROR_NOT_SUPPORTED) throw;
    HPE_THROW(HPE_ERROR_OUT_OF_MEMORY, "device {} is full, and data cannot stay in host memory: {}", g.home, e.what());
  }
  add_piece(r, g, of.now, device::backing_kind::zero_copy);
  taken.keep();
  upload_newer(with(), r, g.read, g.write);
}

void residency::upload(std::vector<gap>& gaps) {
  for (const gap& g : gaps) {
    region& r = *g.region;
    const lock_guard lock(r.mutex);
    r.mutex.assert_held();
    if (!has_piece(r, g)) continue;
    fetcher_.add(g.home, upload_newer(with(), r, g.read, g.write), g.range.size(), g.due);
    eviction_.note_piece(r, g.range.begin);
  }
  gaps.clear();
}

bool residency::fetch(unsigned home, const coherence::use_cycle::predicted_use& use,
                      std::optional<eviction::supply>& from) {
  const device_access access{&regions_.at(use.region), use.bytes, use.reads ? HPE_IN : HPE_OUT};
  plan what = make_plan(std::span(&access, 1), clock_.fetch_add(1) + 1);
  for (gap& g : what.gaps) {
    if (g.home != home) continue;
    g.due = eviction_.steps(home) + use.steps - 1;
    while (!map(g, what.now)) {
      if (!from) from.emplace(eviction_, home, what.now, fetcher_.most_to_come(home));
      if (fetcher_.is_full(home) || from->free_at_once(g.range.size(), use.steps) == 0) return false;
    }
    fetcher_.note_mapped(home, g.range.size());
    fetched_[home].push_back(g);
    if (fetched_[home].size() == pieces_of_group) finish_fetch(home);
  }
  return true;
}

void residency::finish_fetch(unsigned home) {
  upload(fetched_[home]);
  fetcher_.note_uploads(home);
}

bool residency::has_piece(const region& r, const gap& g) {
  const auto piece = r.resident.all().find(g.range.begin);
  return r.alive && piece != r.resident.all().end() && piece->first == g.range.begin &&
         piece->second.end == g.range.end && piece->second.value.home == g.home && !piece->second.value.zero_copy;
}

// If the region has changed, nothing is mapped for the gap: the submission checks again which data is missing after it
// has locked its regions.
bool residency::is_open(const region& r, const gap& g) {
  return r.alive && g.range.end <= r.bytes_at_homes() && r.home_of(g.range.begin) == g.home &&
         r.end_of_home(g.range.begin, g.range.end) == g.range.end &&
         !r.resident.all().overlaps(g.range.begin, g.range.end);
}

void residency::add_piece(region& r, const gap& g, std::uint64_t now, device::backing_kind where) {
  try {
    r.resident.add({g.range, g.home, where == device::backing_kind::zero_copy}, now);
  } catch (...) {
    devices_.at(g.home).unmap(r.layout.base + g.range.begin, g.range.size());
    throw;
  }
  counters::add(count_.bytes_brought_in, g.range.size());
}

void residency::withhold(unsigned home, std::uint64_t bytes) {
  const std::uint64_t most = most_of(home);
  HPE_REQUIRE(bytes <= most, HPE_ERROR_OUT_OF_MEMORY,
              "device {} gives this process {} more bytes for memory that cannot move, of {} in all; {} were requested "
              "(HPE_DEVICE_MEMORY sets the total)",
              home, most, devices_.at(home).info().memory_bytes, bytes);
  short_ = true;
  for (std::uint64_t ended = changes_ended_.load(); !devices_.at(home).withhold(bytes); ended = changes_ended_.load())
    if (evict(home, bytes) == 0 && !wait_for_change(ended)) room_.throw_full(home, bytes);
  room_.withhold(home, bytes);
}

void residency::make_room_on_host(std::uint64_t bytes) {
  const auto missing = [&] { return bytes - std::min(bytes, host_.most_to_take()); };
  if (!host_.limited() || missing() == 0 || missing() > eviction_.zero_copy_bytes()) return;
  for (unsigned home = 0; home < devices_.size(); ++home) {
    const lock_guard lock(*turns_[home]);
    try {
      eviction_.free_zero_copy(home, clock_.fetch_add(1) + 1, missing());
    } catch (const error& e) {  // the allocation tells if the memory is too small
      log(log_level::debug, "data of device {} stays in zero-copy memory: {}", home, e.what());
    }
  }
}

}  // namespace hpe::work
