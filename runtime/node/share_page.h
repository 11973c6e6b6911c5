#pragma once

/// The layout of the file through which processes share a device (device_share).

#include <array>
#include <atomic>
#include <cstdint>

#include "runtime/os/futex.h"

namespace hpe::node {

using share_word = std::atomic<std::uint64_t>;
static_assert(share_word::is_always_lock_free);

/// The slot of one process. Only the process itself writes its slot; after its end, the process that notices the end
/// clears the slot. Times are nanoseconds of the monotonic clock, which is the same for all processes.
struct alignas(128) share_slot {
  share_word member;       ///< 1 while a process owns the slot
  share_word held;         ///< bytes that the process has taken
  share_word wanted;       ///< bytes that are reserved for the process during its turn
  share_word used;         ///< time when the process last used the device
  share_word waits_since;  ///< time when the process began to wait for its turn; 0: it does not wait
  share_word waited;       ///< time when the process last checked whether its turn had come
  share_word turn_ends;    ///< time when the process's turn may end
  // A question to another process. Its number is the time of the question, and is written last.
  share_word question;
  share_word asked;  ///< index of the slot that is asked
  share_word asked_bytes;
  // The last question to this process.
  share_word heard;     ///< number of the question that the process has begun to answer
  share_word answered;  ///< number of the question that the process has answered
  share_word gave;      ///< bytes that the process gave back in answer to that question
};

/// The whole file. A new file reads as zero, which is a page without processes.
struct share_page {
  static constexpr unsigned most_processes = 64;
  os::futex_word bell;              ///< changes whenever sleeping processes must check their conditions again
  std::atomic<std::uint32_t> used;  ///< number of slots that were ever in use
  share_word turn;                  ///< the current turn and its owner; see turn_word
  std::array<share_slot, most_processes> slots;
};

/// The word that says whose turn it is: bits 0 to 7 are the owner's slot + 1, or 0 if no process has its turn; bits 8
/// to 15 are the number of threads that have entered the turn; the other bits are the number of the turn.
struct turn_word {
  static constexpr std::uint64_t one_thread = 1U << 8;
  static constexpr unsigned nobody = ~0U;
  static constexpr unsigned owner(std::uint64_t word) noexcept { return static_cast<unsigned>(word & 0xff) - 1; }
  static constexpr std::uint64_t threads(std::uint64_t word) noexcept { return word >> 8 & 0xff; }
  static constexpr std::uint64_t number(std::uint64_t word) noexcept { return word >> 16; }
  static constexpr std::uint64_t next(std::uint64_t word, unsigned owner, std::uint64_t threads) noexcept {
    return (number(word) + 1) << 16 | threads << 8 | (owner + 1U);
  }
};

}  // namespace hpe::node
