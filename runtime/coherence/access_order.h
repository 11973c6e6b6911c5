#pragma once

/// Who used which bytes of a region's home last, so that new work on them can be ordered behind it: per range the
/// last writer, the readers since, and the concurrent work since. Exact to the byte, because two devices may write the
/// two halves of one block at the same time. Owned and locked by the region.

#include <cstdint>
#include <functional>
#include <map>
#include <span>

#include "runtime/coherence/point_set.h"

namespace hpe::coherence {

/// Offsets begin <= x < end in a region.
struct byte_range {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  [[nodiscard]] std::uint64_t size() const noexcept { return end - begin; }
  [[nodiscard]] bool empty() const noexcept { return begin >= end; }
  friend bool operator==(const byte_range&, const byte_range&) = default;
};

/// Concurrent work may read and write the range, and is not ordered against other concurrent work: whoever queues it
/// does that. To everybody else it is a writer.
class access_order {
 public:
  /// Forgets everything; the region has `size` bytes now.
  void reset(std::uint64_t size);

  /// Adds what a reader of the range waits for: its writers, and concurrent work.
  void before_read(byte_range range, point_set& result) const;
  /// Adds what a writer of the range waits for: its writers, readers, and concurrent work.
  void before_write(byte_range range, point_set& result) const;
  /// Adds what concurrent work on the range waits for: its writers and readers.
  void before_concurrent(byte_range range, point_set& result) const;

  void record_read(byte_range range, timepoint point);
  void record_write(byte_range range, timepoint point);
  void record_concurrent(byte_range range, timepoint point);
  /// Several pieces of work wrote the range together, at least one.
  void record_writes(byte_range range, std::span<const timepoint> points);

  /// Leaves out what is in no one's way any more: points of a timeline whose latest point here is reached. `reached` is
  /// asked once for each timeline.
  void forget(const std::function<bool(timepoint)>& reached);
  /// Whether there are many ranges, and so many were looked at since then, that it pays.
  [[nodiscard]] bool crowded() const noexcept;

  /// The number of different ranges kept, for tests.
  [[nodiscard]] std::size_t range_count() const noexcept { return uses_.size(); }

 private:
  struct use {
    timepoint writer;
    point_set readers;
    point_set concurrent;
    void forget(const point_set& points);
    friend bool operator==(const use&, const use&) = default;
  };
  using map = std::map<std::uint64_t, use>;  // by begin; each reaches to the next

  template <class Add>
  void for_each(byte_range range, const Add& add) const;
  template <class Change>
  void change(byte_range range, timepoint point, const Change& apply);
  map::iterator split(std::uint64_t offset);
  void merge_around(std::uint64_t begin, std::uint64_t end);
  [[nodiscard]] point_set latest() const;

  map uses_;
  std::uint64_t size_ = 0;
  mutable std::uint64_t looked_at_ = 0;  ///< ranges, since the last time that something was forgotten
};

}  // namespace hpe::coherence
