#pragma once

/// Sleeping on a 32-bit word. Safe in signal handlers. Words may lie in memory shared between processes.

#include <atomic>
#include <chrono>
#include <cstdint>

namespace hpe::os {

using futex_word = std::atomic<std::uint32_t>;
static_assert(sizeof(futex_word) == 4 && futex_word::is_always_lock_free);

/// Sleeps while the word equals `expected`; returns when woken, when it differs, on a signal, or at the deadline. The
/// caller looks at its condition again.
void futex_wait(const futex_word& word, std::uint32_t expected) noexcept;
void futex_wait_until(const futex_word& word, std::uint32_t expected,
                      std::chrono::steady_clock::time_point deadline) noexcept;

/// Wakes everybody who sleeps on the word.
void futex_wake_all(const futex_word& word) noexcept;

/// What algorithms without locks are made of. Those that take it as a parameter run in tests on a model of it too,
/// which tries all orders of their steps.
struct hardware {
  template <class T>
  using atomic = std::atomic<T>;

  /// For loops that wait awake.
  static void relax() noexcept { __builtin_ia32_pause(); }

  /// futex_wait and futex_wake_all for words of 64 bits, of which the kernel compares the lower half.
  static void sleep(const std::atomic<std::uint64_t>& word, std::uint64_t expected) noexcept;
  static void wake(const std::atomic<std::uint64_t>& word) noexcept;
};

}  // namespace hpe::os
