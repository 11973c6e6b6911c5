#pragma once

/// What device work does with bytes of regions, and its place in their order. Under the mutexes of the regions, where a
/// description does not say otherwise.

#include <optional>
#include <span>

#include "hpe/hpe.h"
#include "runtime/coherence/region.h"
#include "runtime/device/device.h"

namespace hpe::work {

/// Bytes of one region.
struct region_range {
  coherence::region* region = nullptr;
  coherence::byte_range range;

  /// Throws HPE_ERROR_NOT_A_REGION if the allocation was freed since the range was found.
  void require_alive() const HPE_REQUIRES(region->mutex);
  /// Throws HPE_ERROR_DEVICE_LOST if the home of some bytes is lost.
  void require_homes(device::device_set& devices) const;
  /// Where the bytes lie in the address space.
  [[nodiscard]] std::byte* address() const noexcept { return region->layout.base + range.begin; }
};

/// Waits for the device work that stands in the way of reading or writing bytes in the calling thread. Throws
/// HPE_ERROR_NOT_A_REGION if the allocation was freed. Without the mutex.
void wait_for_users(const region_range& bytes, bool before_write, device::device_set& devices);

/// Waits until the homes of the bytes have room for more commands (device::device::await_room). Without the mutex.
void await_room(const region_range& bytes, device::device_set& devices);

/// Whether the host's copy of a block in this state is good: of fresh blocks it reads as zero.
[[nodiscard]] bool host_has(coherence::block_state state) noexcept;
/// The end, at most `end`, of the blocks from `begin` on that satisfy `has` as the first does.
[[nodiscard]] std::uint64_t end_of_same(const coherence::region& r, std::uint64_t begin, std::uint64_t end,
                                        bool (*has)(coherence::block_state) noexcept) HPE_REQUIRES(r.mutex);

/// Bytes of one region that device work is about to use.
struct device_access {
  coherence::region* region = nullptr;
  coherence::byte_range range;
  hpeAccessMode mode = HPE_INOUT;
  bool if_alive = false;    ///< left out if the region was freed meanwhile, instead of an error
  bool concurrent = false;  ///< not ordered against other concurrent work (coherence::access_order); mode is HPE_INOUT
};

/// Adds what work with these accesses waits for.
void collect(std::span<const device_access> accesses, device::device_set& devices, coherence::point_set& after);

/// Work with these accesses was queued as `points`: one, or one for each of the devices that do it together. Where
/// memory is too short to keep that in the regions' order, this waits for the work instead, so no later work overtakes
/// it.
void record(std::span<const device_access> accesses, std::span<const timepoint> points,
            device::device_set& devices) noexcept;

/// Queues one command that uses the accesses: queue(after) gives its timepoint. If queue throws, nothing was queued.
template <class Queue>
timepoint queue_ordered(std::span<const device_access> accesses, device::device_set& devices, const Queue& queue) {
  coherence::point_set after;
  collect(accesses, devices, after);
  const timepoint point = queue(static_cast<const coherence::point_set&>(after));
  record(accesses, std::span(&point, 1), devices);
  return point;
}

/// Bytes that are read next.
struct read_stretch {
  region_range bytes;
  bool on_host = false;            ///< the host's copy is good, and is read through the alias
  bool queued = false;             ///< the copy from their home is queued
  coherence::point_set writers{};  ///< what such a copy waits for
};

/// Looks at the bytes of `from` from `at` on that are all good on the host, or all at one home and at most `most`.
/// Bytes at a home whose writers have finished are copied: queue(home, bytes) gives the timepoint, none if it queues
/// nothing. Without the mutex, so a caller that has waited for writers, or anything else, asks again.
template <class Queue>
read_stretch read_next(const region_range& from, std::uint64_t at, std::uint64_t most, device::device_set& devices,
                       const Queue& queue);

/// Waits in the calling thread, whatever comes of the points.
void wait_for(std::span<const timepoint> points, device::device_set& devices);
[[nodiscard]] bool reached(std::span<const timepoint> points, const device::device_set& devices);
/// Throws what went wrong with the first of the points, which are reached, that failed.
void require_success(std::span<const timepoint> points, const device::device_set& devices);

template <class Queue>
read_stretch read_next(const region_range& from, std::uint64_t at, std::uint64_t most, device::device_set& devices,
                       const Queue& queue) {
  const coherence::region& r = *from.region;
  read_stretch next{{from.region, {at, at}}};
  const lock_guard lock(from.region->mutex);
  r.mutex.assert_held();
  from.require_alive();
  next.on_host = host_has(r.state(r.block_of(at)));
  next.bytes.range.end = end_of_same(r, at, from.range.end, host_has);
  if (next.on_host) return next;
  next.bytes.range.end = r.end_of_home(at, most < next.bytes.range.size() ? at + most : next.bytes.range.end);
  r.order.before_read(next.bytes.range, next.writers);
  if (!reached(next.writers.points(), devices)) return next;
  const std::optional<timepoint> copied = queue(r.home_of(at), static_cast<const region_range&>(next.bytes));
  if (!copied) return next;
  const device_access access{from.region, next.bytes.range, HPE_IN};
  record(std::span(&access, 1), std::span(&*copied, 1), devices);
  next.queued = true;
  return next;
}

}  // namespace hpe::work
