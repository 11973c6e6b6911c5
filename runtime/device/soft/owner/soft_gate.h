#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <span>

#include "runtime/device/device.h"
#include "runtime/device/soft/shared/fabric.h"

namespace hpe::device::soft {

/// A gate that uses one of the fabric's doorbells. The timelines for which the gate's sleeper waits ring the doorbell
/// when they advance.
class soft_gate final : public gate {
 public:
  /// Takes ownership of `index`, which the caller has taken from `free`. The destructor returns the index to `free`.
  soft_gate(fabric& shared, std::atomic<std::uint64_t>& free, unsigned index)
      : fabric_(shared),
        free_(free),
        bit_(std::uint64_t{1} << index),
        bell_(shared.common().gates[index]),
        seen_(bell_.rings()) {}
  ~soft_gate() override { free_.fetch_or(bit_); }

  void ring() noexcept override { bell_.ring(); }

  void sleep(std::span<const timepoint> points, std::chrono::steady_clock::time_point deadline) override {
    const auto any_reached = [&] {
      return std::any_of(points.begin(), points.end(), [&](timepoint point) {
        const timeline* line = fabric_.find_timeline(point.timeline);
        return line == nullptr || line->reached(point.value);
      });
    };
    // Set the bits first and check afterwards, so that a timeline that advances in between rings the bell.
    for (const timepoint point : points)
      if (timeline* line = fabric_.find_timeline(point.timeline)) line->gates.fetch_or(bit_);
    if (!any_reached()) {
      if (!spin_until([&] { return bell_.rings() != seen_; })) bell_.sleep(seen_, doorbell::trusted(deadline));
      seen_ = bell_.rings();
    }
    for (const timepoint point : points)
      if (timeline* line = fabric_.find_timeline(point.timeline)) line->gates.fetch_and(~bit_);
  }

 private:
  fabric& fabric_;
  std::atomic<std::uint64_t>& free_;
  std::uint64_t bit_;
  doorbell& bell_;
  std::uint32_t seen_;
};

}  // namespace hpe::device::soft
