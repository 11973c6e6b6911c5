#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace hpe {

/// Counters of the runtime; hpeStatistics explains them. Any thread may add, even while another thread reads.
struct counters {
  using counter = std::atomic<std::uint64_t>;
  counter faults_read{0};
  counter faults_write{0};
  counter bytes_to_device{0};
  counter bytes_to_host{0};
  counter bytes_peer{0};
  counter bytes_staged{0};
  counter blocks_prefetched{0};
  counter blocks_rolled{0};
  counter launches{0};
  counter protections{0};
  counter migrations{0};
  counter degraded{0};
  counter bytes_evicted{0};
  counter bytes_written_back{0};
  counter bytes_brought_in{0};
  counter evicting_ns{0};
  counter bytes_given_back{0};
  counter turn_wait_ns{0};
  counter bytes_spilled{0};
  counter bytes_unspilled{0};
  static constexpr unsigned most_devices = 16;
  std::array<counter, most_devices> device_memory{};  ///< bytes of each device that back allocations now

  static void add(counter& c, std::uint64_t n) noexcept { c.fetch_add(n, std::memory_order_relaxed); }
  static void subtract(counter& c, std::uint64_t n) noexcept { c.fetch_sub(n, std::memory_order_relaxed); }
};

}  // namespace hpe
