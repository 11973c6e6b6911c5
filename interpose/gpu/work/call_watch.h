#pragma once

#include <atomic>
#include <cstdint>

namespace hpe::cuda_hooks {

/// Records the reasons for which hooks must examine the program's calls. If there is no reason, a hook costs only one
/// load.
class call_watch {
 public:
  enum reason : std::uint8_t {
    kinds = 1,             ///< a kind of memory is registered (memory_kind.h)
    touched = 2,           ///< CPU code has touched device memory (adopted_memory)
    waits = 4,             ///< libc and MPI calls wait only for work that may use their memory (queued_uses)
    recording = 8,         ///< HPE_TRACE records calls
    observers = 16,        ///< a kind of memory observes the calls (memory_kind.h)
    copies_deferred = 32,  ///< the program's work must wait for deferred_copies
  };

  [[nodiscard]] static bool any() noexcept { return reasons.load(std::memory_order_relaxed) != 0; }
  [[nodiscard]] static bool has(unsigned which) noexcept {
    return (reasons.load(std::memory_order_relaxed) & which) != 0;
  }
  static void begin(reason why) noexcept { reasons.fetch_or(why, std::memory_order_seq_cst); }
  static void end(reason why) noexcept {
    reasons.fetch_and(static_cast<std::uint8_t>(~unsigned{why}), std::memory_order_seq_cst);
  }

 private:
  inline static constinit std::atomic<std::uint8_t> reasons{0};
};

}  // namespace hpe::cuda_hooks
