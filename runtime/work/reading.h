#pragma once

/// Finds a valid copy of bytes of regions that the calling thread reads, and keeps this copy in place during the read.

#include <algorithm>
#include <optional>
#include <utility>

#include "runtime/base/granule.h"
#include "runtime/work/block_copies.h"
#include "runtime/work/host_spill.h"

namespace hpe::work {

/// Keeps the pages of a region's shadow in memory while a thread reads them without the mutex. The thread must create
/// the lease under the mutex, after host_spill::hold.
class shadow_lease {
 public:
  shadow_lease() noexcept = default;
  explicit shadow_lease(coherence::region& r) noexcept : of_(&r) { r.shadow_readers.fetch_add(1); }
  shadow_lease(shadow_lease&& other) noexcept : of_(std::exchange(other.of_, nullptr)) {}
  shadow_lease& operator=(shadow_lease&& other) noexcept {
    std::swap(of_, other.of_);
    return *this;
  }
  shadow_lease(const shadow_lease&) = delete;
  shadow_lease& operator=(const shadow_lease&) = delete;
  ~shadow_lease() {
    if (of_ != nullptr) of_->shadow_readers.fetch_sub(1);
  }

 private:
  coherence::region* of_ = nullptr;
};

/// The bytes that read_next found.
struct read_stretch {
  region_range bytes;
  bool on_host = false;            ///< the host's copy is valid; read it through the alias
  bool missing = false;            ///< the host's copy is valid, but not in memory; call host_spill::bring
  bool queued = false;             ///< a copy from the home was queued
  shadow_lease reading{};          ///< keeps the host's copy in memory
  coherence::point_set writers{};  ///< the points for which a copy from the home must wait
};

/// Finds the longest run of bytes, from offset `at` of `from`, that is valid on the host, or that is valid at one home
/// and has at most `most` bytes. In the second case, if the writers of these bytes have finished, calls queue(home,
/// bytes), which returns the timepoint of a copy, or none if it queued nothing. read_next locks the mutex. After any
/// wait, the caller must call read_next again, because the states of the blocks may have changed.
template <class Queue>
read_stretch read_next(const region_range& from, std::uint64_t at, std::uint64_t most, const resources& with,
                       const Queue& queue) {
  const coherence::region& r = *from.region;
  read_stretch next{{from.region, {at, at}}};
  const lock_guard lock(from.region->mutex);
  r.mutex.assert_held();
  from.require_alive();
  next.on_host = host_has(r.state(r.block_of(at)));
  next.bytes.range.end = end_of_same(r, at, from.range.end, host_has);
  if (next.on_host) {
    if (with.host.limited())
      next.bytes.range.end = std::min(next.bytes.range.end, (at / granule_size + 1) * granule_size);
    next.missing = !with.host.hold(*from.region, next.bytes.range, host_spill::shadow_use::read);
    next.on_host = !next.missing;
    if (next.on_host) next.reading = shadow_lease(*from.region);
    return next;
  }
  next.bytes.range.end = r.end_of_home(at, most < next.bytes.range.size() ? at + most : next.bytes.range.end);
  r.order.before_read(next.bytes.range, next.writers);
  if (!reached(next.writers.points(), with.devices)) return next;
  const std::optional<timepoint> copied = queue(r.home_of(at), static_cast<const region_range&>(next.bytes));
  if (!copied) return next;
  const device_access access{from.region, next.bytes.range, HPE_IN};
  record(std::span(&access, 1), std::span(&*copied, 1), with.devices);
  next.queued = true;
  return next;
}

}  // namespace hpe::work
