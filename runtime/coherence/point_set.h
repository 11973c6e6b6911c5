#pragma once

#include <span>
#include <vector>

#include "runtime/base/timepoint.h"

namespace hpe::coherence {

/// Timepoints to wait for, at most one per timeline: the latest. Not thread-safe.
class point_set {
 public:
  void add(timepoint point);
  void add(const point_set& other);
  /// Whether the set has a point of the timeline.
  [[nodiscard]] bool has(std::uint32_t timeline) const noexcept;
  /// Removes the points of all timelines of which `of` has a point.
  void remove_timelines(const point_set& of);
  void clear() noexcept { points_.clear(); }
  [[nodiscard]] bool empty() const noexcept { return points_.empty(); }
  [[nodiscard]] std::span<const timepoint> points() const noexcept { return points_; }

  friend bool operator==(const point_set&, const point_set&) = default;

 private:
  std::vector<timepoint> points_;  // sorted by timeline
};

}  // namespace hpe::coherence
