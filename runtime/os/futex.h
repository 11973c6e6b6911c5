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

}  // namespace hpe::os
