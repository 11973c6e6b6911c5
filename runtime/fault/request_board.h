#pragma once

/// The board on which faulting threads post requests, and on which lanes find them. The faulting side runs in a signal
/// handler: no locks, no allocation.

#include <sys/types.h>

#include <array>
#include <atomic>
#include <chrono>
#include <span>
#include <vector>

#include "runtime/device/device.h"
#include "runtime/fault/request.h"

namespace hpe::fault {

/// Lets a limited number of threads spin at the same time. A seat is taken until a given time and free afterwards, so
/// it does no harm if a thread never leaves its seat.
class awake_seats {
 public:
  using clock = std::chrono::steady_clock;
  using seat = std::atomic<clock::rep>;

  /// Takes one of the first `limit` seats that is free at `now`, until the time `until`; returns nullptr if none of
  /// these seats is free.
  seat* take(unsigned limit, clock::time_point now, clock::time_point until) noexcept;
  static void leave(seat& taken, clock::time_point until) noexcept;

  static constexpr unsigned most = 128;

 private:
  std::array<seat, most> taken_until_{};
};

class request_board {
 public:
  /// One gate per lane; the gates must outlive the board.
  explicit request_board(std::span<device::gate* const> gates);

  /// Posts a request to a lane and waits for the answer. Safe in a signal handler. If more than slot_count threads ask
  /// at the same time, some of them first wait for a slot. If a thread leaves the wait by a long jump, or ends, its
  /// request remains on the board. The thread's next call of ask(), or another thread that finds no free slot, takes
  /// the request back.
  fault_verdict ask(unsigned lane, std::byte* address, bool write, bool waits_for_announced = true) noexcept;

  /// Appends the requests that were posted to a lane since the last call. Each request is returned only once, to one
  /// lane. Only the thread of lane `lane` may call this function. Does not throw if the list has capacity for
  /// slot_count requests.
  void take(unsigned lane, std::vector<request*>& result);

  static constexpr std::size_t slot_count = 512;

 private:
  static constexpr std::size_t word_bits = 64;
  using bitmap = std::array<std::atomic<std::uint64_t>, slot_count / word_bits>;
  struct lane_state {
    device::gate* gate = nullptr;
    bitmap posted{};
  };
  struct alignas(32) request_slot {
    request wish;
    std::atomic<std::uintptr_t> frame{0};  // the stack frame of the last poster
    std::atomic<pid_t> thread{0};
  };
  struct posted_request {
    std::size_t slot;
    request::ticket ticket;
  };

  posted_request post(std::byte* address, bool write, bool waits_for_announced) noexcept;
  bool take_back_what_is_left(pid_t me) noexcept;
  static fault_verdict wait_for_answer(request& wish, request::ticket mine) noexcept;

  std::array<request_slot, slot_count> slots_;
  std::vector<lane_state> lanes_;
  os::futex_word freed_{0};                 // changes when a slot becomes free
  std::atomic<std::uint32_t> slotless_{0};  // the number of threads that wait for a free slot
};

}  // namespace hpe::fault
