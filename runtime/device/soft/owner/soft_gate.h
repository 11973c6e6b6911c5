#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <span>

#include "runtime/device/device.h"
#include "runtime/device/soft/shared/fabric.h"
#include "runtime/device/soft/shared/spin_until.h"

namespace hpe::device::soft {

/// A gate whose thread sleeps on a wait queue in the memory that owner and devices share. A timeline for which the
/// thread waits wakes it when the timeline advances.
class soft_gate final : public gate {
 public:
  /// Uses wait queue number `index`. `free` is the bit mask of unused wait queues, from which the caller has removed
  /// this index; the destructor adds it again.
  soft_gate(fabric& shared, std::atomic<std::uint64_t>& free, unsigned index)
      : fabric_(shared),
        free_(free),
        bit_(std::uint64_t{1} << index),
        sleepers_(shared.common().gates[index]),
        seen_(sleepers_.wakes()) {}
  ~soft_gate() override { free_.fetch_or(bit_); }

  void ring() noexcept override { sleepers_.wake_all(); }

  void sleep(std::span<const timepoint> points, std::chrono::steady_clock::time_point deadline) override {
    const auto any_reached = [&] {
      return std::any_of(points.begin(), points.end(), [&](timepoint point) {
        const timeline* line = fabric_.find_timeline(point.timeline);
        return line == nullptr || line->reached(point.value);
      });
    };
    // Set the gate's bit in each timeline before checking the timelines, so that a timeline that advances after the
    // check wakes the thread.
    for (const timepoint point : points)
      if (timeline* line = fabric_.find_timeline(point.timeline)) line->gates.fetch_or(bit_);
    if (!any_reached()) {
      if (!spin_until([&] { return sleepers_.wakes() != seen_; }))
        sleepers_.sleep(seen_, wait_queue::trusted(deadline));
      seen_ = sleepers_.wakes();
    }
    for (const timepoint point : points)
      if (timeline* line = fabric_.find_timeline(point.timeline)) line->gates.fetch_and(~bit_);
  }

 private:
  fabric& fabric_;
  std::atomic<std::uint64_t>& free_;
  std::uint64_t bit_;
  wait_queue& sleepers_;
  std::uint32_t seen_;
};

}  // namespace hpe::device::soft
