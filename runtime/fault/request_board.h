#pragma once

/// Where threads that faulted leave what they need, and lanes find it. The faulting side runs in a signal handler: no
/// locks, no allocation.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/device/device.h"
#include "runtime/os/futex.h"

namespace hpe::fault {

enum class verdict : std::uint8_t {
  retry,    ///< the page may be usable now: do the access again
  not_ours  ///< nobody serves this address
};

/// One faulting thread's wish. The lane that took it answers it exactly once.
class request {
 public:
  [[nodiscard]] std::byte* address() const noexcept { return address_; }
  [[nodiscard]] bool write() const noexcept { return write_; }
  /// Whether it waits for announced work (coherence::announcements).
  [[nodiscard]] bool waits_for_announced() const noexcept { return waits_for_announced_; }

  /// Lets the thread go on. The request is nobody's afterwards.
  void answer(verdict v) noexcept;

 private:
  friend class request_board;
  enum : std::uint32_t { free_slot, claimed, posted, slept_on, retry_it, refuse_it };

  os::futex_word state_{free_slot};
  std::byte* address_ = nullptr;
  bool write_ = false;
  bool waits_for_announced_ = true;
};

class request_board {
 public:
  /// One gate per lane; they outlive the board.
  explicit request_board(std::span<device::gate* const> gates);

  /// Posts a wish to a lane and waits for the answer. Safe in a signal handler. With more than slot_count threads at
  /// once, some wait for a slot first. A program that leaves the wait by a long jump from a handler of another signal
  /// loses the slot for good.
  verdict ask(unsigned lane, std::byte* address, bool write, bool waits_for_announced = true) noexcept;

  /// Adds what was posted to a lane since the last call. Called by that lane alone.
  void take(unsigned lane, std::vector<request*>& result);

  static constexpr std::size_t slot_count = 512;

 private:
  static constexpr std::size_t word_bits = 64;
  using bitmap = std::array<std::atomic<std::uint64_t>, slot_count / word_bits>;
  struct lane_state {
    device::gate* gate = nullptr;
    bitmap posted{};
  };

  std::size_t claim() noexcept;
  static std::uint32_t wait_for_answer(request& slot) noexcept;

  std::array<request, slot_count> slots_;
  std::vector<lane_state> lanes_;
  os::futex_word freed_{0};                 // changes when a slot becomes free
  std::atomic<std::uint32_t> slotless_{0};  // threads that wait for one
};

}  // namespace hpe::fault
