#pragma once

/// A doorbell in shared memory: threads sleep on it, and threads of the same or other processes wake them.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "runtime/os/futex.h"
#include "runtime/os/thread.h"

namespace hpe::device::soft {

/// A doorbell counts its rings. sleep() returns when the count differs from the caller's `seen`. ring() is safe in a
/// signal handler, and makes no system call if no thread sleeps. If a process dies while one of its threads sleeps,
/// each later ring makes a system call; nothing else changes.
///
/// To wait for a condition: read seen = rings(), check the condition, call sleep(seen, ...) if the condition is false,
/// and repeat.
class doorbell {
 public:
  using deadline = std::chrono::steady_clock::time_point;

  /// Returns the deadline for the sleep of a thread that other processes must wake: `until`, but at most 250 ms from
  /// the current time. After this time the thread must check its condition again, because a faulty kernel may have
  /// overwritten the doorbell, which then never rings.
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

/// Spins for at most 20 us, about as long as a short command takes on a device whose threads do not sleep. Returns true
/// as soon as holds() is true, and false after this time. On a single core, calls holds() only once.
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
