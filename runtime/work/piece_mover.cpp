// Class piece_mover, which eviction.h declares.
#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/os/free_memory.h"
#include "runtime/trace/recorder.h"
#include "runtime/work/eviction.h"
#include "runtime/work/host_memory.h"

namespace hpe::work {

using coherence::byte_range;
using coherence::region;
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

bool piece_mover::may_move(const region& r, std::uint64_t begin, unsigned home, backing_kind to) const {
  if (!has_piece(r, begin, home) || r.degraded || r.acquired != 0) return false;
  const auto& piece = r.resident.all().find(begin)->second;
  return piece.value.zero_copy != (to == backing_kind::zero_copy) && piece.end - begin <= r.layout.piece_size &&
         !sharing_.holds(r, {begin, piece.end});
}

std::uint64_t piece_mover::move(region& r, std::uint64_t begin, unsigned home, backing_kind to) {
  const trace::recorded here(trace::category::call, to == backing_kind::device ? "bring in" : "evict");
  for (bool leaving = false;; leaving = true) {
    coherence::point_set users;
    {
      const lock_guard lock(r.mutex);
      r.mutex.assert_held();
      if (!may_move(r, begin, home, to)) {
        if (leaving && has_piece(r, begin, home)) r.resident.set_leaving(begin, false);
        return 0;
      }
      const byte_range piece{begin, r.resident.all().find(begin)->second.end};
      const byte_range bytes{begin, std::min(piece.end, r.layout.extent)};
      sharing_.forget(with_, r, bytes);
      r.resident.set_leaving(begin, true);
      r.order.before_write(bytes, users);
      if (reached(users.points(), with_.devices)) {
        try {
          change_memory(r, piece, home, to);
        } catch (...) {
          r.resident.set_leaving(begin, false);
          throw;
        }
        r.resident.set_leaving(begin, false);
        return piece.size();
      }
    }
    wait_for(users.points(), with_.devices);
  }
}

bool piece_mover::bring_in(region& r, byte_range piece, unsigned home) {
  const device::device& it = with_.devices.at(home);
  if (const std::size_t spare = it.info().spare_bytes; spare != 0 && it.memory().free < piece.size() + spare)
    return false;
  try {
    if (move(r, piece.begin, home, backing_kind::device) != 0) return true;
  } catch (const error& e) {
    if (e.status() != HPE_ERROR_OUT_OF_MEMORY) throw;
    return false;
  }
  const lock_guard lock(r.mutex);
  HPE_REQUIRE(!has_piece(r, piece.begin, home) || !r.resident.has_zero_copy(piece), HPE_ERROR_OUT_OF_MEMORY,
              "{} bytes in host memory cannot move to device {}, because other processes use them", piece.size(), home);
  return true;
}

bool piece_mover::is_on_standby(region& r, byte_range piece, unsigned home) {
  const auto before = std::exchange(r.resident.all().find(piece.begin)->second.value.on_standby, std::nullopt);
  if (!before) return false;
  const auto now = fingerprints_.take(home, r, {piece.begin, std::min(piece.end, r.layout.extent)});
  if (!now) return false;
  wait_for(std::array{before->computed, now->computed}, with_.devices);
  return fingerprints_.are_same(*before, *now);
}

void piece_mover::change_memory(region& r, byte_range piece, unsigned home, backing_kind to) {
  const std::uint64_t bytes = piece.size();
  const bool to_host = to == backing_kind::zero_copy;
  device::device& it = with_.devices.at(home);
  std::byte* const address = r.layout.base + piece.begin;
  HPE_REQUIRE(
      !to_host || it.has_standby(address) || host_has_room(home, bytes), HPE_ERROR_OUT_OF_MEMORY,
      "device {} is full, and other data cannot leave it for host memory, where {:.0f} bytes are free: the next "
      "{} bytes would leave less than {} bytes free",
      home, os::free_memory(), bytes, least_free_on_host);
  const bool on_standby = to_host && is_on_standby(r, piece, home);
  if (to_host) with_.host.take(bytes);
  try {
    it.begin_move(address, bytes, to, on_standby)->finish();
    if (!to_host && with_.host.limited()) it.drop_standby();
  } catch (const error& e) {
    if (to_host) with_.host.give_back(bytes);
    if (e.status() != HPE_ERROR_NOT_SUPPORTED) throw;
    HPE_THROW(HPE_ERROR_OUT_OF_MEMORY, "device {} is full, and other data cannot leave it for host memory: {}", home,
              e.what());
  } catch (...) {
    if (to_host) with_.host.give_back(bytes);
    throw;
  }
  r.resident.set_zero_copy(piece.begin, to_host);
  if (to_host) {
    counters::subtract(count_.device_memory[home], bytes);
    counters::add(count_.bytes_evicted, bytes);
    if (!on_standby) counters::add(count_.bytes_written_back, bytes);
  } else {
    if (it.has_standby(address))
      r.resident.all().find(piece.begin)->second.value.on_standby =
          fingerprints_.take(home, r, {piece.begin, std::min(piece.end, r.layout.extent)});
    with_.host.give_back(bytes);
    counters::add(count_.device_memory[home], bytes);
    counters::add(count_.bytes_brought_in, bytes);
  }
}

}  // namespace hpe::work
