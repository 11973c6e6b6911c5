#include "runtime/device/soft/soft_gate.h"

#include <algorithm>

namespace hpe::device::soft {

soft_gate::soft_gate(fabric& shared, std::atomic<std::uint64_t>& free, unsigned index)
    : fabric_(shared),
      free_(free),
      bit_(std::uint64_t{1} << index),
      bell_(shared.state().gates[index]),
      seen_(bell_.rings()) {}

void soft_gate::sleep(std::span<const timepoint> points, std::chrono::steady_clock::time_point deadline) {
  const auto any_reached = [&] {
    return std::any_of(points.begin(), points.end(), [&](timepoint point) {
      const timeline* line = fabric_.find_timeline(point.timeline);
      return line == nullptr || line->reached(point.value);
    });
  };
  // Announced first, looked at afterwards: what advances between the two rings.
  for (const timepoint point : points)
    if (timeline* line = fabric_.find_timeline(point.timeline)) line->gates.fetch_or(bit_);
  if (!any_reached()) {
    if (!spin_until([&] { return bell_.rings() != seen_; })) bell_.sleep(seen_, deadline);
    seen_ = bell_.rings();
  }
  for (const timepoint point : points)
    if (timeline* line = fabric_.find_timeline(point.timeline)) line->gates.fetch_and(~bit_);
}

}  // namespace hpe::device::soft
