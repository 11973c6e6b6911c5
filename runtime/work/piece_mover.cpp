// All code for zero-copy memory: class piece_mover, the functions of class eviction::supply that move groups of pieces
// (eviction.h declares both), and a function of class residency.
#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"
#include "runtime/base/log.h"
#include "runtime/os/free_memory.h"
#include "runtime/trace/recorder.h"
#include "runtime/work/eviction.h"
#include "runtime/work/host_memory.h"
#include "runtime/work/residency.h"

namespace hpe::work {

using coherence::byte_range;
using coherence::region;
using coherence::resident_piece;
using device::backing_kind;

bool piece_mover::host_has_room(unsigned home, std::uint64_t bytes) const {
  const auto wanted = static_cast<double>(bytes + least_free_on_host);
  if (os::free_memory() >= wanted) return true;
  with_.devices.at(home).drop_standby();
  return os::free_memory() >= wanted;
}

bool piece_mover::has_piece(const region& r, std::uint64_t begin, unsigned home) {
  if (!r.alive) return false;
  const auto piece = r.resident.all().find(begin);
  return piece != r.resident.all().end() && piece->first == begin && piece->second.value.home == home;
}

bool piece_mover::may_move(const piece& p, unsigned home) const {
  const region& r = *p.region;
  r.mutex.assert_held();  // the same mutex, by the name that Clang compares
  if (!has_piece(r, p.range.begin, home) || r.degraded || r.acquired != 0) return false;
  const auto& there = r.resident.all().find(p.range.begin)->second;
  return there.end == p.range.end && there.value.zero_copy != (p.to == backing_kind::zero_copy) &&
         p.range.size() <= r.layout.piece_size && !sharing_.holds(r, p.range);
}

/// Opens pieces to work again when the object ends.
class piece_mover::closed_pieces {
 public:
  closed_pieces(std::span<const piece> pieces, unsigned home) noexcept : pieces_(pieces), home_(home) {}
  closed_pieces(const closed_pieces&) = delete;
  closed_pieces& operator=(const closed_pieces&) = delete;
  ~closed_pieces() {
    for (const piece& p : pieces_) {
      region& r = *p.region;
      const lock_guard lock(r.mutex);
      if (has_piece(r, p.range.begin, home_)) r.resident.set_leaving(p.range.begin, false);
    }
  }

 private:
  const std::span<const piece> pieces_;
  const unsigned home_;
};

/// The host memory of a piece outside of the device, as far as HPE_HOST_MEMORY limits it. The destructor gives the
/// memory back, unless keep() was called.
class piece_mover::host_bytes {
 public:
  /// May wait for the thread that makes room in host memory. That thread locks regions, so the caller must not hold the
  /// mutex of a region.
  host_bytes(host_memory& host, const piece& p) : host_(&host) {
    if (p.to != backing_kind::zero_copy) return;
    try {
      host.take(p.range.size());
      bytes_ = p.range.size();
    } catch (const error& e) {
      if (e.status() != HPE_ERROR_OUT_OF_MEMORY) throw;
      refusal_ = e;
    }
  }
  host_bytes(host_bytes&& other) noexcept
      : host_(other.host_), bytes_(std::exchange(other.bytes_, 0)), refusal_(std::move(other.refusal_)) {}
  host_bytes& operator=(host_bytes&&) = delete;
  host_bytes(const host_bytes&) = delete;
  host_bytes& operator=(const host_bytes&) = delete;
  ~host_bytes() {
    if (bytes_ != 0) host_->give_back(bytes_);
  }

  /// Throws HPE_ERROR_OUT_OF_MEMORY if there was no host memory for the piece.
  void require() const {
    if (refusal_) throw error(*refusal_);
  }
  void keep() noexcept { bytes_ = 0; }

 private:
  host_memory* host_;
  std::uint64_t bytes_ = 0;
  std::optional<error> refusal_;
};

std::uint64_t piece_mover::move(std::span<piece> pieces, unsigned home) {
  const trace::recorded here(trace::category::call, "move data");
  std::vector<host_bytes> host;
  host.reserve(pieces.size());
  for (const piece& p : pieces) host.emplace_back(with_.host, p);
  std::vector<region*> regions;
  for (const piece& p : pieces) regions.push_back(p.region);
  std::ranges::sort(regions, {}, &region::id);
  regions.erase(std::unique(regions.begin(), regions.end()), regions.end());
  for (const closed_pieces closed(pieces, home);;) {
    coherence::point_set users;
    {
      region_locks locks;
      locks.lock(regions);
      for (piece& p : pieces) {
        p.region->mutex.assert_held();
        p.is_movable = may_move(p, home);
        if (!p.is_movable) continue;
        const byte_range bytes{p.range.begin, std::min(p.range.end, p.region->layout.extent)};
        sharing_.forget(with_, *p.region, bytes);
        p.region->resident.set_leaving(p.range.begin, true);
        p.region->order.before_write(bytes, users);
      }
      if (reached(users.points(), with_.devices)) return change_memory(pieces, home, host);
    }
    const trace::recorded waits(trace::category::call, "move data: earlier work");
    wait_for(users.points(), with_.devices);
  }
}

void piece_mover::require_moved(const piece& p, unsigned home) const {
  const lock_guard lock(p.region->mutex);
  HPE_REQUIRE(
      !has_piece(*p.region, p.range.begin, home) || !p.region->resident.has_zero_copy(p.range), HPE_ERROR_OUT_OF_MEMORY,
      "{} bytes in host memory cannot move to device {}, because other processes use them", p.range.size(), home);
}

std::vector<bool> piece_mover::find_standby(std::span<const piece> pieces, unsigned home) {
  using fingerprint = std::optional<coherence::piece_fingerprint>;
  std::vector<std::pair<fingerprint, fingerprint>> all(pieces.size());  // before and now
  std::vector<timepoint> computed;
  for (std::size_t n = 0; n < pieces.size(); ++n) {
    const piece& p = pieces[n];
    if (!p.is_movable || p.to != backing_kind::zero_copy) continue;
    region& r = *p.region;
    auto& [before, now] = all[n];
    before = std::exchange(r.resident.all().find(p.range.begin)->second.value.on_standby, std::nullopt);
    if (!before || !with_.devices.at(home).has_standby(r.layout.base + p.range.begin)) continue;
    now = fingerprints_.take(home, r, {p.range.begin, std::min(p.range.end, r.layout.extent)});
    if (now) computed.insert(computed.end(), {before->computed, now->computed});
  }
  const trace::recorded here(trace::category::call, "move data: comparisons");
  wait_for(computed, with_.devices);
  std::vector<bool> result;
  for (const auto& [before, now] : all) result.push_back(before && now && fingerprints_.are_same(*before, *now));
  return result;
}

std::unique_ptr<device::move_of_bytes> piece_mover::begin(const piece& p, unsigned home, bool on_standby) {
  device::device& it = with_.devices.at(home);
  std::byte* const address = p.region->layout.base + p.range.begin;
  const std::uint64_t bytes = p.range.size();
  HPE_REQUIRE(
      p.to == backing_kind::device || it.has_standby(address) || host_has_room(home, bytes), HPE_ERROR_OUT_OF_MEMORY,
      "device {} is full, and other data cannot leave it for host memory, where {:.0f} bytes are free: the next "
      "{} bytes would leave less than {} bytes free",
      home, os::free_memory(), bytes, least_free_on_host);
  try {
    return it.begin_move(address, bytes, p.to, on_standby);
  } catch (const error& e) {
    if (e.status() != HPE_ERROR_NOT_SUPPORTED) throw;
    HPE_THROW(HPE_ERROR_OUT_OF_MEMORY, "device {} is full, and other data cannot leave it for host memory: {}", home,
              e.what());
  }
}

void piece_mover::note_moved(const piece& p, unsigned home, bool on_standby) {
  region& r = *p.region;
  r.mutex.assert_held();
  const std::uint64_t bytes = p.range.size();
  const bool to_host = p.to == backing_kind::zero_copy;
  r.resident.set_zero_copy(p.range.begin, to_host);
  if (to_host) {
    counters::subtract(count_.device_memory[home], bytes);
    counters::add(count_.bytes_evicted, bytes);
    if (!on_standby) counters::add(count_.bytes_written_back, bytes);
    return;
  }
  if (with_.host.limited()) with_.devices.at(home).drop_standby();
  with_.host.give_back(bytes);
  counters::add(count_.device_memory[home], bytes);
  counters::add(count_.bytes_brought_in, bytes);
}

void piece_mover::note_standby(const piece& p, unsigned home) {
  region& r = *p.region;
  r.mutex.assert_held();
  if (with_.devices.at(home).has_standby(r.layout.base + p.range.begin))
    r.resident.all().find(p.range.begin)->second.value.on_standby =
        fingerprints_.take(home, r, {p.range.begin, std::min(p.range.end, r.layout.extent)});
}

std::uint64_t piece_mover::change_memory(std::span<piece> pieces, unsigned home, std::vector<host_bytes>& host) {
  struct begun_move {
    piece* of;
    bool on_standby;
    host_bytes& host;
    std::unique_ptr<device::move_of_bytes> bytes;
  };
  std::vector<begun_move> moves;
  std::optional<error> failure;
  const auto attempt = [&](const auto& act) {
    try {
      act();
    } catch (const error& e) {
      if (e.status() != HPE_ERROR_OUT_OF_MEMORY) throw;
      if (!failure) failure = e;
    }
  };
  // The pieces that come in need no comparison, so their copies begin first.
  std::vector<bool> on_standby(pieces.size());
  for (const backing_kind to : {backing_kind::device, backing_kind::zero_copy}) {
    if (to == backing_kind::zero_copy) on_standby = find_standby(pieces, home);
    for (std::size_t n = 0; n < pieces.size(); ++n) {
      piece& p = pieces[n];
      if (!p.is_movable || p.to != to) continue;
      attempt([&] {
        host[n].require();
        moves.push_back({&p, on_standby[n], host[n], begin(p, home, on_standby[n])});
      });
    }
  }
  {
    const trace::recorded here(trace::category::call, "move data: copies");
    for (const begun_move& m : moves) m.bytes->wait();
  }
  std::uint64_t freed = 0;
  bool any = false;
  const trace::recorded here(trace::category::call, "move data: mappings");
  for (begun_move& m : moves)
    attempt([&] {
      m.bytes->finish();
      m.host.keep();
      m.of->region->mutex.assert_held();
      note_moved(*m.of, home, m.on_standby);
      m.of->has_moved = any = true;
      if (m.of->to == backing_kind::zero_copy) freed += m.of->range.size();
    });
  for (const piece& p : pieces)
    if (p.has_moved && p.to == backing_kind::device) note_standby(p, home);
  if (failure && !any) throw *failure;
  return freed;
}

// ---- supply: groups of pieces ------------------------------------------------------------------------------------

namespace {

// In one stop of a device's work, data for the next steps comes in, at most this part of the device's memory.
constexpr std::uint64_t part_at_once = 16;
// The data moves in groups of this part of the memory: the pieces of a group come in while other pieces make room for
// the next group. Room for one group stays free for the next stop.
constexpr std::uint64_t part_of_group = 32;
constexpr std::uint64_t most_at_once = std::uint64_t{512} << 20;
constexpr std::uint64_t largest_group = std::uint64_t{256} << 20;

}  // namespace

void eviction::supply::add_upcoming(std::vector<piece_mover::piece>& pieces) {
  const std::uint64_t most =
      std::min<std::uint64_t>(of_.with_.devices.at(home_).info().memory_bytes / part_at_once, most_at_once);
  if (!of_.predicts(home_) || most < granule_size) return;
  std::uint64_t in = 0;
  for (const piece_mover::piece& p : pieces) in += p.range.size();
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

void eviction::supply::add_leaving(std::vector<piece_mover::piece>& group, std::uint64_t bytes) {
  if (bytes == 0 || (next_ == order_.size() && !look_for_candidates())) return;
  for (std::uint64_t sum = 0; sum < bytes && next_ < order_.size(); ++next_) {
    group.push_back({order_[next_].region, order_[next_].range, backing_kind::zero_copy});
    sum += order_[next_].range.size();
  }
}

std::uint64_t eviction::supply::move(std::span<piece_mover::piece> group) {
  std::uint64_t freed = of_.mover_.move(group, home_);
  for (const piece_mover::piece& p : group)
    if (p.to == backing_kind::zero_copy && !p.is_movable) freed += of_.evict_to_shadow(*p.region, p.range.begin, home_);
  wanted_ -= std::min(wanted_, freed);
  return freed;
}

bool eviction::supply::bring_in(std::vector<piece_mover::piece>& pieces) {
  const device::device& it = of_.with_.devices.at(home_);
  const std::uint64_t most = std::min<std::uint64_t>(it.info().memory_bytes / part_of_group, largest_group);
  std::uint64_t moved[2] = {};
  add_upcoming(pieces);
  while (!pieces.empty()) {
    const std::uint64_t spare = it.info().spare_bytes, all = it.memory().free;
    const std::uint64_t free = all - std::min(all, spare);
    std::vector<piece_mover::piece> group;
    std::uint64_t in = 0, rest = 0;
    for (const piece_mover::piece& p : pieces) {
      const std::uint64_t bytes = p.range.size();
      const bool is_next = rest == 0 && (in == 0 || in + bytes <= most) && in + bytes <= free;
      if (is_next) group.push_back(p);
      (is_next ? in : rest) += bytes;
    }
    const auto next = static_cast<std::ptrdiff_t>(group.size());
    const std::uint64_t room = rest == 0 ? most : std::max(pieces[group.size()].range.size(), std::min(rest, most));
    add_leaving(group, room - std::min(room, free - in));
    std::uint64_t freed = 0;
    try {
      freed = move(group);
    } catch (const error& e) {
      if (e.status() != HPE_ERROR_OUT_OF_MEMORY) throw;
    }
    const auto stays = [](const piece_mover::piece& p) { return !p.has_moved && p.is_movable; };
    const bool any = freed > 0 || std::any_of(group.begin(), group.begin() + next, std::not_fn(stays));
    for (auto p = group.begin(); p != group.begin() + next; ++p)
      if (p->has_moved)
        moved[p->due != 0] += p->range.size();
      else if (p->due == 0 && !p->is_movable)
        of_.mover_.require_moved(*p, home_);
    std::copy(group.begin(), group.begin() + next, pieces.begin());
    pieces.erase(std::remove_if(pieces.begin(), pieces.begin() + next, std::not_fn(stays)), pieces.begin() + next);
    if (!any) break;
  }
  log(log_level::debug, "device {}: {} bytes moved in for work that waited, and {} bytes for later work", home_,
      moved[0], moved[1]);
  return pieces.empty() || pieces.front().due != 0;
}

// ---- gaps that stay in host memory --------------------------------------------------------------------------------

void residency::fill_with_zero_copy(const gap& g, std::uint64_t now) {
  const std::uint64_t bytes = g.range.size();
  // If work may use all data, other data must keep its zero-copy memory.
  const auto make_room = [&] { return !eviction_.keeps_mapped() && eviction_.free_zero_copy(g.home, now, bytes) > 0; };
  while (!eviction_.mover().host_has_room(g.home, bytes))
    HPE_REQUIRE(make_room(), HPE_ERROR_OUT_OF_MEMORY,
                "device {} is full, and the rest of the work's data cannot stay in host memory, where {:.0f} bytes are "
                "free: the next {} bytes would leave less than {} bytes free",
                g.home, os::free_memory(), bytes, piece_mover::least_free_on_host);
  for (bool is_taken = false; !is_taken;) {
    try {
      host_.take(bytes);
      is_taken = true;
    } catch (const error& e) {
      if (e.status() != HPE_ERROR_OUT_OF_MEMORY || !make_room()) throw;
    }
  }
  bool is_added = false;
  try {
    region& r = *g.region;
    const lock_guard lock(r.mutex);
    r.mutex.assert_held();
    if (!is_open(r, g)) return host_.give_back(bytes);
    const bool fresh = eviction::any_block(
        r, g.range, [](coherence::block_state s) noexcept { return s == coherence::block_state::fresh; });
    devices_.at(g.home).map(r.layout.base + g.range.begin, bytes,
                            fresh ? device::contents::zeros : device::contents::any, device::backing_kind::zero_copy);
    add_piece(r, g, now, device::backing_kind::zero_copy);
    is_added = true;
    upload_newer(with(), r, g.read, g.write);
  } catch (const error& e) {
    if (!is_added) host_.give_back(bytes);
    if (e.status() != HPE_ERROR_NOT_SUPPORTED) throw;
    HPE_THROW(HPE_ERROR_OUT_OF_MEMORY,
              "device {} is full, and the rest of the work's data cannot stay in host memory: {}", g.home, e.what());
  } catch (...) {
    if (!is_added) host_.give_back(bytes);
    throw;
  }
}

}  // namespace hpe::work
