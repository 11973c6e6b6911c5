#pragma once

#include <span>
#include <vector>

#include "runtime/base/timepoint.h"

namespace hpe::coherence {

/// Timepoints for which work must wait. The set contains at most one point of each timeline, the latest one. Not
/// thread-safe.
class point_set {
 public:
  void add(timepoint point);
  void add(const point_set& other);
  /// Whether the set contains a point of the timeline.
  [[nodiscard]] bool has(std::uint32_t timeline) const noexcept;
  /// Whether the set contains this point or a later one of its timeline.
  [[nodiscard]] bool covers(timepoint point) const noexcept;
  /// Makes room for one more point, so that the next add() of a point allocates no memory.
  void reserve() { points_.reserve(points_.size() + 1); }
  /// Removes all points whose timelines have a point in `of`.
  void remove_timelines(const point_set& of);
  void clear() noexcept { points_.clear(); }
  [[nodiscard]] bool empty() const noexcept { return points_.empty(); }
  [[nodiscard]] std::span<const timepoint> points() const noexcept { return points_; }

  friend bool operator==(const point_set&, const point_set&) = default;

 private:
  std::vector<timepoint> points_;  // sorted by timeline
};

}  // namespace hpe::coherence
