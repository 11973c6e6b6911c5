#pragma once

/// Sleeping on a 32-bit word. Safe in signal handlers. The words may be in memory shared between processes.

#include <atomic>
#include <chrono>
#include <cstdint>

namespace hpe::os {

using futex_word = std::atomic<std::uint32_t>;
static_assert(sizeof(futex_word) == 4 && futex_word::is_always_lock_free);

/// Sleeps while the word equals `expected`. Returns when woken, when the word differs, on a signal, or at the deadline.
/// The caller must check its condition again.
void futex_wait(const futex_word& word, std::uint32_t expected) noexcept;
void futex_wait_until(const futex_word& word, std::uint32_t expected,
                      std::chrono::steady_clock::time_point deadline) noexcept;

/// Wakes all threads that sleep on the word.
void futex_wake_all(const futex_word& word) noexcept;

/// The primitives of lock-free algorithms. Algorithms that take this struct as a template parameter also run in tests
/// with a model of the struct, which tries all interleavings of the algorithms' steps.
struct hardware {
  template <class T>
  using atomic = std::atomic<T>;

  /// A pause for spin loops.
  static void relax() noexcept { __builtin_ia32_pause(); }

  /// Like futex_wait and futex_wake_all, for 64-bit words; the operating system compares only the lower half of a word.
  static void sleep(const std::atomic<std::uint64_t>& word, std::uint64_t expected) noexcept;
  static void wake(const std::atomic<std::uint64_t>& word) noexcept;
};

}  // namespace hpe::os
