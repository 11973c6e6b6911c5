#include "runtime/work/zero_copy_memory.h"

#include <algorithm>

#include "runtime/base/log.h"
#include "runtime/os/free_memory.h"
#include "runtime/trace/recorder.h"

namespace hpe::work {

using coherence::byte_range;
using coherence::region;
using device::backing_kind;

namespace {

// Zero-copy memory leaves this much of the host's memory free.
constexpr std::uint64_t least_free_on_host = std::uint64_t{512} << 20;
// A group of pieces that come in has at most this part of the device's memory. Room for one group stays free for the
// next stop.
constexpr std::uint64_t part_of_group = 32;
constexpr std::uint64_t largest_group = std::uint64_t{256} << 20;

}  // namespace

bool zero_copy_memory::has_piece(const region& r, std::uint64_t begin, unsigned home) {
  if (!r.alive) return false;
  const auto piece = r.resident.all().find(begin);
  return piece != r.resident.all().end() && piece->first == begin && piece->second.value.home == home;
}

bool zero_copy_memory::may_move(const piece& p, unsigned home) const {
  const region& r = *p.region;
  r.mutex.assert_held();  // the same mutex, by the name that Clang compares
  if (!has_piece(r, p.range.begin, home) || r.degraded || r.acquired != 0) return false;
  const auto& there = r.resident.all().find(p.range.begin)->second;
  return there.end == p.range.end && there.value.zero_copy != (p.to == backing_kind::zero_copy) &&
         p.range.size() <= r.layout.piece_size && !sharing_.holds(r, p.range);
}

/// Opens pieces to work again when the object ends.
class zero_copy_memory::closed_pieces {
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

zero_copy_memory::host_bytes zero_copy_memory::take_for(piece& p) {
  if (p.to != backing_kind::zero_copy) return {};
  try {
    return {with_.host, p.range.size()};
  } catch (const error& e) {
    if (e.status() != HPE_ERROR_OUT_OF_MEMORY) throw;
    p.lacks_host_memory = true;
    return {};
  }
}

zero_copy_memory::host_bytes zero_copy_memory::take(unsigned home, std::uint64_t bytes,
                                                    const std::function<bool()>& make_room) {
  for (;;) try {
      require_free(home, bytes);
      return {with_.host, bytes};
    } catch (const error& e) {
      if (e.status() != HPE_ERROR_OUT_OF_MEMORY || !make_room()) throw;
    }
}

void zero_copy_memory::require_free(unsigned home, std::uint64_t bytes) const {
  const auto has_room = [&](const os::free_bytes& free) {
    return free.bytes >= static_cast<double>(bytes + least_free_on_host);
  };
  os::free_bytes free = os::free_memory();
  if (!has_room(free)) {
    with_.devices.at(home).drop_standby();
    free = os::free_memory();
  }
  HPE_REQUIRE(has_room(free), HPE_ERROR_OUT_OF_MEMORY,
              "device {} is full, and data cannot stay in host memory, because the next {} bytes would leave "
              "less than {} bytes free: {} has {:.0f} free bytes",
              home, bytes, least_free_on_host, free.limit, free.bytes);
}

std::uint64_t zero_copy_memory::move(std::span<piece> pieces, unsigned home) {
  const trace::recorded here(trace::category::call, "move data");
  std::vector<host_bytes> host;  // taken before regions are locked; see take()
  host.reserve(pieces.size());
  for (piece& p : pieces) host.push_back(take_for(p));
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

void zero_copy_memory::require_moved(const piece& p, unsigned home) {
  const lock_guard lock(p.region->mutex);
  HPE_REQUIRE(
      !has_piece(*p.region, p.range.begin, home) || !p.region->resident.has_zero_copy(p.range), HPE_ERROR_OUT_OF_MEMORY,
      "{} bytes in host memory cannot move to device {}, because other processes use them", p.range.size(), home);
}

std::vector<bool> zero_copy_memory::find_standby(std::span<const piece> pieces, unsigned home) {
  using fingerprint = std::optional<coherence::piece_fingerprint>;
  std::vector<std::pair<fingerprint, fingerprint>> all(pieces.size());  // before and now
  std::vector<timepoint> computed;
  for (std::size_t n = 0; n < pieces.size(); ++n) {
    const piece& p = pieces[n];
    if (!p.is_movable || p.lacks_host_memory || p.to != backing_kind::zero_copy) continue;
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

void zero_copy_memory::begin(device::group_of_moves& moves, const piece& p, unsigned home, bool on_standby) const {
  std::byte* const address = p.region->layout.base + p.range.begin;
  const std::uint64_t bytes = p.range.size();
  if (p.to == backing_kind::zero_copy && !with_.devices.at(home).has_standby(address)) require_free(home, bytes);
  try {
    moves.add(address, bytes, p.to, on_standby);
  } catch (const error& e) {
    if (e.status() != HPE_ERROR_NOT_SUPPORTED) throw;
    HPE_THROW(HPE_ERROR_OUT_OF_MEMORY, "device {} is full, and data cannot stay in host memory: {}", home, e.what());
  }
}

void zero_copy_memory::note_moved(const piece& p, unsigned home, bool on_standby) {
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

void zero_copy_memory::note_standby(const piece& p, unsigned home) {
  region& r = *p.region;
  r.mutex.assert_held();
  if (with_.devices.at(home).has_standby(r.layout.base + p.range.begin))
    r.resident.all().find(p.range.begin)->second.value.on_standby =
        fingerprints_.take(home, r, {p.range.begin, std::min(p.range.end, r.layout.extent)});
}

std::uint64_t zero_copy_memory::change_memory(std::span<piece> pieces, unsigned home, std::vector<host_bytes>& host) {
  struct begun_move {
    piece* of;
    bool on_standby;
    host_bytes& host;
  };
  std::vector<begun_move> begun;
  begun.reserve(pieces.size());
  std::optional<error> failure;
  const auto note_failure = [&](piece& p, const error& e) {
    if (e.status() == HPE_ERROR_OUT_OF_MEMORY && p.to == backing_kind::zero_copy && with_.host.limited())
      p.lacks_host_memory = true;
    else if (!failure || failure->status() == HPE_ERROR_OUT_OF_MEMORY)
      failure = e;
  };
  const std::unique_ptr<device::group_of_moves> moves = with_.devices.at(home).begin_moves();
  // The pieces that come in need no comparison, so their copies begin first.
  std::vector<bool> on_standby(pieces.size());
  for (const backing_kind to : {backing_kind::device, backing_kind::zero_copy}) {
    if (to == backing_kind::zero_copy) on_standby = find_standby(pieces, home);
    for (std::size_t n = 0; n < pieces.size(); ++n) {
      piece& p = pieces[n];
      if (!p.is_movable || p.lacks_host_memory || p.to != to) continue;
      try {
        begin(*moves, p, home, on_standby[n]);
        begun.push_back({&p, on_standby[n], host[n]});
      } catch (const error& e) {
        if (e.status() != HPE_ERROR_OUT_OF_MEMORY) throw;
        note_failure(p, e);
      }
    }
  }
  {
    const trace::recorded here(trace::category::call, "move data: copies");
    moves->wait();
  }
  const trace::recorded here(trace::category::call, "move data: mappings");
  const std::vector<std::optional<error>> failures = moves->finish();
  std::uint64_t freed = 0;
  bool any = false;
  for (std::size_t n = 0; n < begun.size(); ++n) {
    const begun_move& m = begun[n];
    if (failures[n]) {
      note_failure(*m.of, *failures[n]);
      continue;
    }
    m.host.keep();
    m.of->region->mutex.assert_held();
    note_moved(*m.of, home, m.on_standby);
    m.of->has_moved = any = true;
    if (m.of->to == backing_kind::zero_copy) freed += m.of->range.size();
  }
  for (const piece& p : pieces)
    if (p.has_moved && p.to == backing_kind::device) note_standby(p, home);
  if (failure && (!any || failure->status() != HPE_ERROR_OUT_OF_MEMORY)) throw error(*failure);
  return freed;
}

bool zero_copy_memory::bring_in(std::vector<piece>& pieces, unsigned home, exchange& with) {
  const device::device& it = with_.devices.at(home);
  const std::uint64_t most = std::min<std::uint64_t>(it.info().memory_bytes / part_of_group, largest_group);
  std::uint64_t moved[2] = {};
  while (!pieces.empty()) {
    const std::uint64_t spare = it.info().spare_bytes, all = it.memory().free;
    const std::uint64_t free = all - std::min(all, spare);
    std::vector<piece> group;
    std::uint64_t in = 0, rest = 0;
    for (const piece& p : pieces) {
      const std::uint64_t bytes = p.range.size();
      const bool is_next = rest == 0 && (in == 0 || in + bytes <= most) && in + bytes <= free;
      if (is_next) group.push_back(p);
      (is_next ? in : rest) += bytes;
    }
    const auto next = static_cast<std::ptrdiff_t>(group.size());
    const std::uint64_t room = rest == 0 ? most : std::max(pieces[group.size()].range.size(), std::min(rest, most));
    with.add_leaving(group, room - std::min(room, free - in));
    std::uint64_t freed = 0;
    try {
      freed = with.move(group);
    } catch (const error& e) {
      if (e.status() != HPE_ERROR_OUT_OF_MEMORY) throw;
    }
    const auto stays = [](const piece& p) { return !p.has_moved && p.is_movable; };
    const bool any = freed > 0 || std::any_of(group.begin(), group.begin() + next, std::not_fn(stays));
    for (auto p = group.begin(); p != group.begin() + next; ++p)
      if (p->has_moved)
        moved[p->due != 0] += p->range.size();
      else if (p->due == 0 && !p->is_movable)
        require_moved(*p, home);
    std::copy(group.begin(), group.begin() + next, pieces.begin());
    pieces.erase(std::remove_if(pieces.begin(), pieces.begin() + next, std::not_fn(stays)), pieces.begin() + next);
    if (!any) break;
  }
  log(log_level::debug, "device {}: {} bytes moved in for work that waited, and {} bytes for later work", home,
      moved[0], moved[1]);
  return pieces.empty() || pieces.front().due != 0;
}

}  // namespace hpe::work
