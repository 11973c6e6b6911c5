#pragma once

/// The accesses of device work to bytes of regions, and their place in the regions' order. The caller holds the mutexes
/// of the regions, unless a description says otherwise.

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
  /// Throws HPE_ERROR_DEVICE_LOST if the home of any of the bytes is lost.
  void require_homes(device::device_set& devices) const;
  /// The address of the first byte.
  [[nodiscard]] std::byte* address() const noexcept { return region->layout.base + range.begin; }
};

/// Waits for the device work that must finish before the calling thread reads or writes the bytes. Throws
/// HPE_ERROR_NOT_A_REGION if the allocation was freed. The caller must not hold the mutex.
void wait_for_users(const region_range& bytes, bool before_write, device::device_set& devices);

/// Waits until the homes of the bytes have room for commands (device::device::await_room). Not under the mutex.
void await_room(const region_range& bytes, device::device_set& devices);

/// Whether the host's copy of a block in this state is valid. A fresh block counts, because it reads as zero.
[[nodiscard]] bool host_has(coherence::block_state state) noexcept;
/// The end, at most `end`, of the blocks from `begin` on for which `has` gives the same answer as for the first.
[[nodiscard]] std::uint64_t end_of_same(const coherence::region& r, std::uint64_t begin, std::uint64_t end,
                                        bool (*has)(coherence::block_state) noexcept) HPE_REQUIRES(r.mutex);

/// Bytes of one region that device work is about to use.
struct device_access {
  coherence::region* region = nullptr;
  coherence::byte_range range;
  hpeAccessMode mode = HPE_INOUT;
  bool if_alive = false;    ///< if the region was freed meanwhile, the access is left out instead of an error
  bool concurrent = false;  ///< not ordered against other concurrent work (coherence::access_order); mode is HPE_INOUT
};

/// Adds the points that work with these accesses must wait for.
void collect(std::span<const device_access> accesses, device::device_set& devices, coherence::point_set& after);

/// Records work with these accesses, queued as `points`: one, or one for each of the devices that do it together. If
/// memory is too short for an entry in the regions' order, waits for the work instead, so that no later work overtakes
/// it.
void record(std::span<const device_access> accesses, std::span<const timepoint> points,
            device::device_set& devices) noexcept;

/// Queues one command with these accesses: queue(after) returns its timepoint. If queue throws, it has queued nothing.
template <class Queue>
timepoint queue_ordered(std::span<const device_access> accesses, device::device_set& devices, const Queue& queue) {
  coherence::point_set after;
  collect(accesses, devices, after);
  const timepoint point = queue(static_cast<const coherence::point_set&>(after));
  record(accesses, std::span(&point, 1), devices);
  return point;
}

/// The bytes that read_next found.
struct read_stretch {
  region_range bytes;
  bool on_host = false;            ///< the host's copy is valid; read it through the alias
  bool queued = false;             ///< a copy from the home was queued
  coherence::point_set writers{};  ///< the points that such a copy must wait for
};

/// Finds the longest run of bytes from offset `at` of `from` that is valid on the host, or, up to `most` bytes, at one
/// home. In the second case, if the writers of these bytes have finished, calls queue(home, bytes), which returns the
/// timepoint of a copy, or none if it queued nothing. Takes the mutex itself; after any wait, the caller must call this
/// again.
template <class Queue>
read_stretch read_next(const region_range& from, std::uint64_t at, std::uint64_t most, device::device_set& devices,
                       const Queue& queue);

/// Waits in the calling thread until all points are reached, whether or not their work failed.
void wait_for(std::span<const timepoint> points, device::device_set& devices);
[[nodiscard]] bool reached(std::span<const timepoint> points, const device::device_set& devices);
/// Throws the error of the first point whose work failed. All points must be reached.
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
