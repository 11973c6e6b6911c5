#pragma once

/// Threads sleep on a wait queue in shared memory, and threads of the same or other processes wake them.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "runtime/os/futex.h"

namespace hpe::device::soft {

/// A wait queue counts the calls of wake_all(). sleep() returns when the count differs from the caller's `seen`.
/// wake_all() is safe in a signal handler, and makes no system call if no thread sleeps. If a process dies while one of
/// its threads sleeps, each later wake_all() makes a system call; nothing else changes.
///
/// To wait for a condition: read seen = wakes(), check the condition, call sleep(seen, ...) if the condition is false,
/// and repeat.
class wait_queue {
 public:
  using deadline = std::chrono::steady_clock::time_point;

  /// Returns the deadline for the sleep of a thread that other processes must wake: `until`, but at most 250 ms from
  /// the current time. After this time the thread must check its condition again, because a faulty kernel may have
  /// overwritten the queue, which then wakes no thread.
  [[nodiscard]] static deadline trusted(deadline until) noexcept {
    constexpr std::chrono::milliseconds longest{250};
    return std::min(until, std::chrono::steady_clock::now() + longest);
  }

  [[nodiscard]] std::uint32_t wakes() const noexcept { return word_.load(); }

  void wake_all() noexcept {
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

}  // namespace hpe::device::soft
