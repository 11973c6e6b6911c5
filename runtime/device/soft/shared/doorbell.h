#pragma once

/// A doorbell in shared memory, with which threads of several processes wait for each other and wake each other.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "runtime/os/futex.h"
#include "runtime/os/thread.h"

namespace hpe::device::soft {

/// Counts rings. A sleeper returns when the count differs from the count that it saw. Ringing is safe in a signal
/// handler, and makes no system call if no thread sleeps. If a sleeper dies, the only effect is that each later ring
/// makes a system call.
///
/// Use: seen = rings(); check the condition; if it does not hold, sleep(seen, ...); check again.
class doorbell {
 public:
  using deadline = std::chrono::steady_clock::time_point;

  /// Returns the time at which the sleeper of a doorbell that other processes ring must check its condition again, even
  /// if the doorbell has not rung. A faulty kernel may have overwritten the doorbell, so the sleeper relies on it only
  /// for a limited time.
  [[nodiscard]] static deadline trusted(deadline until) noexcept {
    constexpr std::chrono::milliseconds longest{250};
    return std::min(until, std::chrono::steady_clock::now() + longest);
  }

  [[nodiscard]] std::uint32_t rings() const noexcept { return word_.load(); }

  void ring() noexcept {
    word_.fetch_add(1);
    if (sleepers_.load() != 0) os::futex_wake_all(word_);
  }

  void sleep(std::uint32_t seen, deadline until) noexcept {
    sleepers_.fetch_add(1);
    os::futex_wait_until(word_, seen, until);
    sleepers_.fetch_sub(1);
  }

 private:
  os::futex_word word_{0};
  std::atomic<std::uint32_t> sleepers_{0};
};

inline void relax() noexcept { __builtin_ia32_pause(); }

/// Spins for a short while, about as long as a command takes on a device that is awake. Returns true once holds() is
/// true.
template <class Condition>
bool spin_until(Condition holds) {
  constexpr std::chrono::microseconds patience{20};
  constexpr int checks_per_look_at_the_clock = 16;
  static const bool alone = os::usable_cores() == 1;
  if (holds()) return true;
  if (alone) return false;
  const auto end = std::chrono::steady_clock::now() + patience;
  do {
    for (int i = 0; i < checks_per_look_at_the_clock; ++i) {
      relax();
      if (holds()) return true;
    }
    std::this_thread::yield();
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

}  // namespace hpe::device::soft
