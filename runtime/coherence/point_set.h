#pragma once

#include <span>
#include <vector>

#include "runtime/base/timepoint.h"

namespace hpe::coherence {

/// Timepoints to wait for, at most one per timeline: the latest. A value type for one thread.
class point_set {
 public:
  void add(timepoint point);
  void add(const point_set& other);
  /// Whether it has a point of the timeline.
  [[nodiscard]] bool has(std::uint32_t timeline) const noexcept;
  /// Leaves out the points of timelines of which `of`, another set, has one.
  void remove_timelines(const point_set& of);
  void clear() noexcept { points_.clear(); }
  [[nodiscard]] bool empty() const noexcept { return points_.empty(); }
  [[nodiscard]] std::span<const timepoint> points() const noexcept { return points_; }

  friend bool operator==(const point_set&, const point_set&) = default;

 private:
  std::vector<timepoint> points_;  // sorted by timeline
};

}  // namespace hpe::coherence
