#pragma once

/// The progress of a stream, in memory shared by the owner and all devices. Commands of a stream are numbered from 1.
///
/// Writers: the owner (submitted, gates), the stream's device (completed, failures), and, after that device has died,
/// the owner's monitor (completed, lost_after).

#include <array>
#include <atomic>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "hpe/hpe.h"
#include "hpe/ptx.h"
#include "runtime/device/soft/shared/wait_queue.h"

namespace hpe::device::soft {

/// A failed command. failure_log truncates `sentence` to 611 bytes.
struct command_failure {
  std::uint64_t value = 0;  // the command's number
  std::uint64_t order = 0;  // the position among the failures of all streams
  hpeStatus status = HPE_SUCCESS;
  std::string sentence;
  hpeFault fault = HPE_FAULT_NONE;
};

/// The last failures of one stream. One thread writes; any number of threads read. A reader returns no failure for a
/// record that the writer is overwriting.
class failure_log {
 public:
  static constexpr std::uint64_t kept = 128;

  void append(const command_failure& what) noexcept;
  [[nodiscard]] std::uint64_t count() const noexcept { return count_.load(std::memory_order_acquire); }
  /// Returns the index of the oldest failure in the log.
  [[nodiscard]] std::uint64_t first_kept() const noexcept { return count() > kept ? count() - kept : 0; }
  /// Returns failure number `index`, where 0 is the stream's first failure; nullopt if a later failure has overwritten
  /// this failure.
  [[nodiscard]] std::optional<command_failure> at(std::uint64_t index) const;
  [[nodiscard]] std::optional<command_failure> find(std::uint64_t value) const;

 private:
  struct record {
    mutable std::atomic<std::uint64_t> value{0};  // the command's number; 0 while a thread is writing the record
    std::uint64_t order = 0;
    hpeStatus status = HPE_SUCCESS;
    hpeFault fault = HPE_FAULT_NONE;
    char sentence[612] = "";
  };

  std::atomic<std::uint64_t> count_{0};
  std::array<record, kept> records_{};
};

/// The wait queues of gates. Each timeline has one bit for each gate. When the timeline advances, it wakes the threads
/// of the gates whose bits are set.
inline constexpr unsigned max_gates = 64;
using gate_queues = std::array<wait_queue, max_gates>;

struct timeline {
  static constexpr std::uint64_t all = std::numeric_limits<std::uint64_t>::max();

  alignas(64) std::atomic<std::uint64_t> submitted{0};
  wait_queue work;                                      // its threads wake when `submitted` grows
  alignas(64) std::atomic<std::uint64_t> completed{0};  // changed by fabric::complete
  std::atomic<std::uint64_t> gates{0};         // the gates to wake when `completed` grows, one bit for each gate
  std::atomic<std::uint64_t> lost_after{all};  // set when the device is lost: the last completed command
  failure_log failures;

  [[nodiscard]] bool reached(std::uint64_t value) const noexcept { return completed.load() >= value; }
};

}  // namespace hpe::device::soft
