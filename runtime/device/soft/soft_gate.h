#pragma once

#include <atomic>

#include "runtime/device/device.h"
#include "runtime/device/soft/fabric.h"

namespace hpe::device::soft {

/// One of the fabric's bells. Timelines that its sleeper waits for ring it when they advance.
class soft_gate final : public gate {
 public:
  /// Takes over the index, which was taken from `free`, and gives it back there.
  soft_gate(fabric& shared, std::atomic<std::uint64_t>& free, unsigned index);
  ~soft_gate() override { free_.fetch_or(bit_); }

  void ring() noexcept override { bell_.ring(); }
  void sleep(std::span<const timepoint> points, std::chrono::steady_clock::time_point deadline) override;

 private:
  fabric& fabric_;
  std::atomic<std::uint64_t>& free_;
  std::uint64_t bit_;
  doorbell& bell_;
  std::uint32_t seen_;
};

}  // namespace hpe::device::soft
