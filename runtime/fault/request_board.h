#pragma once

/// Where threads that faulted leave what they need, and lanes find it. The faulting side runs in a signal handler: no
/// locks, no allocation.

#include <sys/types.h>

#include <array>
#include <atomic>
#include <chrono>
#include <span>
#include <vector>

#include "runtime/device/device.h"
#include "runtime/fault/request.h"

namespace hpe::fault {

/// Lets a limited number of threads wait awake at once. A seat is taken until a time, and free afterwards, so a thread
/// that never comes back to leave it costs nothing.
class awake_seats {
 public:
  using clock = std::chrono::steady_clock;
  using seat = std::atomic<clock::rep>;

  /// Of the first `limit` seats, one that is free now; nullptr if none is. It is the caller's until that time.
  seat* take(unsigned limit, clock::time_point now, clock::time_point until) noexcept;
  static void leave(seat& taken, clock::time_point until) noexcept;

  static constexpr unsigned most = 128;

 private:
  std::array<seat, most> taken_until_{};
};

class request_board {
 public:
  /// One gate per lane; they outlive the board.
  explicit request_board(std::span<device::gate* const> gates);

  /// Posts a wish to a lane and waits for the answer. Safe in a signal handler. With more than slot_count threads at
  /// once, some wait for a request first. A thread that leaves the wait by a long jump, or ends, leaves its request
  /// behind: its next wish, or a thread that finds no other one, takes it back.
  verdict ask(unsigned lane, std::byte* address, bool write, bool waits_for_announced = true) noexcept;

  /// Adds what was posted to a lane since the last call; a request is in the hands of at most one lane, once. Called by
  /// that lane alone. Throws nothing if the list has room for slot_count requests.
  void take(unsigned lane, std::vector<request*>& result);

  static constexpr std::size_t slot_count = 512;

 private:
  static constexpr std::size_t word_bits = 64;
  using bitmap = std::array<std::atomic<std::uint64_t>, slot_count / word_bits>;
  struct lane_state {
    device::gate* gate = nullptr;
    bitmap posted{};
  };
  struct alignas(32) slot {
    request wish;
    std::atomic<std::uintptr_t> frame{0};  // where the stack of the thread was whose it was last
    std::atomic<pid_t> thread{0};
  };
  struct posted_request {
    std::size_t slot;
    request::ticket ticket;
  };

  posted_request post(std::byte* address, bool write, bool waits_for_announced) noexcept;
  bool take_back_what_is_left(pid_t me) noexcept;
  static verdict wait_for_answer(request& wish, request::ticket mine) noexcept;

  std::array<slot, slot_count> slots_;
  std::vector<lane_state> lanes_;
  os::futex_word freed_{0};                 // changes when a request becomes free
  std::atomic<std::uint32_t> slotless_{0};  // threads that wait for one
};

}  // namespace hpe::fault
