#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>

#include "runtime/device/device.h"
#include "runtime/os/futex.h"

namespace hpe::device::cuda {

class cuda_set;

/// How long a waiting thread sleeps between two queries of the devices. For the first 500 us, the thread queries
/// without sleeping. Later, each pause is 1/32 of the time for which the thread has waited, but at least 20 us and at
/// most 500 us.
struct polling {
  static constexpr std::chrono::microseconds awake{500};

  // The time for which a thread that waits for no timepoint, only for ring(), spins before it sleeps. A program thread
  // whose page fault was handled usually raises its next page fault within this time, even if it first writes blocks
  // that hpe has opened in advance.
  static constexpr std::chrono::microseconds awake_without_work{500};

  [[nodiscard]] static std::chrono::nanoseconds pause(std::chrono::nanoseconds waited) {
    constexpr std::chrono::nanoseconds shortest = std::chrono::microseconds(20);
    constexpr std::chrono::nanoseconds longest = std::chrono::microseconds(500);
    return std::clamp(waited / 32, shortest, longest);
  }
};

class cuda_gate final : public gate {
 public:
  explicit cuda_gate(const cuda_set& set) : set_(set) {}

  void ring() noexcept override;
  void sleep(std::span<const timepoint> points, std::chrono::steady_clock::time_point deadline) override;

 private:
  const cuda_set& set_;
  os::futex_word rings_{0};
  std::atomic<bool> asleep_{false};
  std::uint32_t seen_ = 0;  // the number of rings that the sleeper has seen
};

}  // namespace hpe::device::cuda
