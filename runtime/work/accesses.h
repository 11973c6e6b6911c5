#pragma once

/// The accesses of device work to bytes of regions, and the position of this work in the regions' order. The caller
/// must hold the mutexes of the regions, unless the comment of a function says otherwise.

#include <span>
#include <vector>

#include "hpe/hpe.h"
#include "runtime/base/box.h"
#include "runtime/base/function_ref.h"
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

/// Returns the device work that must finish before the calling thread reads or writes the bytes. Throws
/// HPE_ERROR_NOT_A_REGION if the allocation was freed. The caller must not hold the region's mutex.
[[nodiscard]] coherence::point_set users_of(const region_range& bytes, bool before_write);
/// Waits for this work; see users_of.
void wait_for_users(const region_range& bytes, bool before_write, device::device_set& devices);

/// Waits until the homes of the bytes can accept further commands (device::device::await_room). The caller must not
/// hold the region's mutex.
void await_room(const region_range& bytes, device::device_set& devices);

/// Whether the host's copy of a block in this state is valid. A fresh block counts, because it reads as zero.
[[nodiscard]] bool host_has(coherence::block_state state) noexcept;
/// Whether the host's copy of a block in this state is valid and has pages.
[[nodiscard]] bool has_host_copy(coherence::block_state state) noexcept;
/// The end of the run of blocks that begins at `begin` and for which `has` returns the same value; at most `end`.
[[nodiscard]] std::uint64_t end_of_same(const coherence::region& r, std::uint64_t begin, std::uint64_t end,
                                        bool (*has)(coherence::block_state) noexcept) HPE_REQUIRES(r.mutex);

/// Bytes of one region that device work is about to use.
struct device_access {
  coherence::region* region = nullptr;
  coherence::byte_range range;
  hpeAccessMode mode = HPE_INOUT;
  bool if_alive = false;     ///< if the region has been freed, the access is omitted and no error is thrown
  bool concurrent = false;   ///< the access is not ordered against other concurrent work (coherence::access_order)
  bool only_mapped = false;  ///< the bytes must be accessible to the device, but need not be in device memory
  bool unsure = false;       ///< the work's kernel is not known, so it may leave the bytes unchanged
  /// For HPE_OUT: null if the work writes all bytes of the range; otherwise the rows that it writes, with their offset
  /// in the region. The other bytes of the range keep their values.
  const placed_box* rows = nullptr;
};

/// Locks of regions. The destructor unlocks them. The thread safety analysis cannot follow locks in a container.
class region_locks {
 public:
  region_locks() = default;
  region_locks(const region_locks&) = delete;
  region_locks& operator=(const region_locks&) = delete;
  ~region_locks() { unlock(); }

  /// Locks regions, which must be different ones in the order of their numbers, so that threads cannot deadlock. The
  /// object must have no locks.
  void lock(std::vector<coherence::region*> regions) HPE_NO_THREAD_SAFETY_ANALYSIS;
  void unlock() noexcept HPE_NO_THREAD_SAFETY_ANALYSIS;

 private:
  std::vector<coherence::region*> locked_;
};

/// Adds to `after` the points for which work with these accesses must wait.
void collect(std::span<const device_access> accesses, device::device_set& devices, coherence::point_set& after);

/// Records work with these accesses that was queued as `points`: one point, or one for each of the devices that do the
/// work together (record_or_wait).
void record(std::span<const device_access> accesses, std::span<const timepoint> points,
            device::device_set& devices) noexcept;

/// Calls `record`, which makes later work wait for work that was queued as `points`. If there is no memory for the
/// record, waits for the work instead: queued work runs, so its caller must not report a failure.
void record_or_wait(std::span<const timepoint> points, device::device_set& devices,
                    function_ref<void()> record) noexcept;

/// Queues one command with these accesses: queue(after) returns its timepoint. If queue throws, it has queued nothing.
template <class Queue>
timepoint queue_ordered(std::span<const device_access> accesses, device::device_set& devices, const Queue& queue) {
  coherence::point_set after;
  collect(accesses, devices, after);
  const timepoint point = queue(static_cast<const coherence::point_set&>(after));
  record(accesses, std::span(&point, 1), devices);
  return point;
}

/// Waits in the calling thread until all points are reached, whether or not their work failed.
void wait_for(std::span<const timepoint> points, device::device_set& devices);
[[nodiscard]] bool reached(std::span<const timepoint> points, const device::device_set& devices);
/// The points of the device work that uses the shadow of some bytes. The shadow must not change before this work ends.
[[nodiscard]] coherence::point_set users_of_shadow(const coherence::region& r, coherence::byte_range bytes)
    HPE_REQUIRES(r.mutex);
/// Throws the error of the first point whose work failed. All points must be reached.
void require_success(std::span<const timepoint> points, const device::device_set& devices);

}  // namespace hpe::work
