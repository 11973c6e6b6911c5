#pragma once

/// For each range of bytes of a region's home, the queued work for which new work must wait: the last writer, and the
/// readers and the concurrent work (hpeLaunchGridAfter) that were queued after the last writer. The ranges are exact to
/// the byte, because two devices may write the two halves of one block at the same time. Owned by the region and
/// guarded by its mutex.

#include <cstdint>
#include <functional>
#include <map>
#include <span>

#include "runtime/coherence/point_set.h"
#include "runtime/coherence/work_anywhere.h"

namespace hpe::coherence {

/// Offsets begin <= x < end in a region.
struct byte_range {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  [[nodiscard]] std::uint64_t size() const noexcept { return end - begin; }
  [[nodiscard]] bool empty() const noexcept { return begin >= end; }
  friend bool operator==(const byte_range&, const byte_range&) = default;
};

/// This class does not order concurrent work with other concurrent work on the same range; the code that queues the
/// work is responsible for that order. For all other work, concurrent work counts as a writer.
class access_order {
 public:
  /// `all`: the work that may use any region's memory; may be null. This work counts as concurrent work on the whole
  /// region, also if it was queued before the region began: later work may join the last command of a stream
  /// (device::cuda::cuda_stream), and then has the same timepoint.
  explicit access_order(work_anywhere* all = nullptr) noexcept : anywhere_(all) {}

  /// Sets the homes of the region: a bit for each device; 0 for memory of the host.
  void set_homes(std::uint64_t homes) noexcept { homes_ = homes; }
  /// Forgets all uses. The region now has `size` bytes.
  void reset(std::uint64_t size);

  /// Adds the points for which a reader of the range must wait: its writers, and concurrent work.
  void before_read(byte_range range, point_set& result) const;
  /// Adds the points for which a writer of the range must wait: its writers, readers, and concurrent work.
  void before_write(byte_range range, point_set& result) const;
  /// Adds the points for which concurrent work on the range must wait: its writers and readers.
  void before_concurrent(byte_range range, point_set& result) const;

  void record_read(byte_range range, timepoint point);
  void record_write(byte_range range, timepoint point);
  void record_concurrent(byte_range range, timepoint point);
  /// Records that several pieces of work (at least one) write the range together.
  void record_writes(byte_range range, std::span<const timepoint> points);

  /// Drops the points of each timeline whose latest point in this object is reached, because no work has to wait for
  /// these points. Calls `reached` once for each timeline.
  void forget(const std::function<bool(timepoint)>& reached);
  /// Whether forget() is worth a call: many ranges exist, and many were visited since its last call.
  [[nodiscard]] bool crowded() const noexcept;

  /// The number of ranges kept, for tests.
  [[nodiscard]] std::size_t range_count() const noexcept { return uses_.size(); }

 private:
  struct range_users {
    timepoint writer;
    point_set readers;
    point_set concurrent;
    void forget(const point_set& points);
    friend bool operator==(const range_users&, const range_users&) = default;
  };
  // The users of each range, by the range's first offset; a range extends to the next range.
  using map = std::map<std::uint64_t, range_users>;

  template <class Add>
  void for_each(byte_range range, const Add& add) const;
  template <class Change>
  void change(byte_range range, timepoint point, const Change& apply);
  map::iterator split(std::uint64_t offset);
  void merge_around(std::uint64_t begin, std::uint64_t end);
  [[nodiscard]] point_set latest() const;

  work_anywhere* anywhere_;
  std::uint64_t homes_ = 0;
  map uses_;
  std::uint64_t size_ = 0;
  mutable std::uint64_t looked_at_ = 0;  ///< ranges visited since the last forget()
};

}  // namespace hpe::coherence
