#include "runtime/os/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <climits>
#include <ctime>

namespace hpe::os {

namespace {

// The half of the word that the operating system compares. Only the operating system reads the half through this
// reference.
const futex_word& lower_half(const std::atomic<std::uint64_t>& word) noexcept {
  static_assert(std::endian::native == std::endian::little);
  return reinterpret_cast<const futex_word&>(word);
}

// The shared forms (no FUTEX_PRIVATE_FLAG) are used throughout, so that a word works within and between processes.
void wait(const futex_word& word, std::uint32_t expected, const timespec* deadline) noexcept {
  const int saved = errno;
  ::syscall(SYS_futex, &word, FUTEX_WAIT_BITSET, expected, deadline, nullptr, FUTEX_BITSET_MATCH_ANY);
  errno = saved;
}

}  // namespace

void futex_wait(const futex_word& word, std::uint32_t expected) noexcept { wait(word, expected, nullptr); }

void futex_wait_until(const futex_word& word, std::uint32_t expected,
                      std::chrono::steady_clock::time_point deadline) noexcept {
  if (deadline == std::chrono::steady_clock::time_point::max()) return wait(word, expected, nullptr);
  // steady_clock is CLOCK_MONOTONIC, the clock of FUTEX_WAIT_BITSET's absolute deadlines.
  const auto since_boot = std::chrono::duration_cast<std::chrono::nanoseconds>(deadline.time_since_epoch()).count();
  if (since_boot <= 0) return;
  const timespec absolute{static_cast<time_t>(since_boot / 1000000000), static_cast<long>(since_boot % 1000000000)};
  wait(word, expected, &absolute);
}

void futex_wake_all(const futex_word& word) noexcept {
  const int saved = errno;
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  errno = saved;
}

void hardware::sleep(const std::atomic<std::uint64_t>& word, std::uint64_t expected) noexcept {
  wait(lower_half(word), static_cast<std::uint32_t>(expected), nullptr);
}

void hardware::wake(const std::atomic<std::uint64_t>& word) noexcept { futex_wake_all(lower_half(word)); }

}  // namespace hpe::os
