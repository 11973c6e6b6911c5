#pragma once

/// A faulting thread's request to a lane, and its life cycle: free -> posted -> taken -> answered -> free.
///
/// A request is one atomic word, so other threads see a posted request completely or not at all. A thread may stop
/// waiting permanently: by a long jump from a handler, by cancellation, or because the thread ends. Its request is then
/// *taken back*: at once, if no lane has taken the request or if the request is answered; otherwise when the lane
/// answers it (abandoned -> free). Taking back a request whose thread still waits is harmless: the thread finds that
/// the word no longer belongs to its request, repeats its access, and posts a new request.

#include <cstddef>
#include <cstdint>
#include <optional>

#include "runtime/os/futex.h"
#include "runtime/os/signals.h"

namespace hpe::fault {

using os::fault_verdict;

/// `Memory` is os::hardware, or a model of os::hardware with which a test tries all interleavings of the steps.
template <class Memory>
class basic_request {
 public:
  /// The word with which a request was posted. The thread that posted the request recognises the request by this word.
  using ticket = std::uint64_t;

  // ---- for the lane that took the request and must answer it exactly once --------------------------------------

  [[nodiscard]] std::byte* address() const noexcept {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): post() made the number from a pointer
    return reinterpret_cast<std::byte*>(word_.load(std::memory_order_relaxed) >> address_shift);
  }
  [[nodiscard]] bool write() const noexcept { return (word_.load(std::memory_order_relaxed) & write_bit) != 0; }
  /// Whether the thread waits for announced work (coherence::announcements).
  [[nodiscard]] bool waits_for_announced() const noexcept {
    return (word_.load(std::memory_order_relaxed) & announced_bit) != 0;
  }
  /// Answers the request, so that the thread continues. The lane must not use the request afterwards.
  void answer(fault_verdict v) noexcept {
    const std::uint64_t next = v == fault_verdict::retry ? retry_it : refuse_it;
    change([&](std::uint64_t word) { return phase(word) == abandoned ? freed(word) : with(word, next); });
  }

  // ---- for the board --------------------------------------------------------------------------------------------

  /// Posts a request in this object, if the object is free.
  std::optional<ticket> post(const std::byte* address, bool write, bool waits_for_announced) noexcept {
    std::uint64_t word = word_.load(std::memory_order_acquire);
    if (phase(word) != free) return std::nullopt;
    const std::uint64_t wish = reinterpret_cast<std::uintptr_t>(address) << address_shift | (write ? write_bit : 0) |
                               (waits_for_announced ? announced_bit : 0) | posted;
    const ticket mine = wish | (((word & generation_mask) + generation_unit) & generation_mask);
    if (!word_.compare_exchange_strong(word, mine, std::memory_order_acq_rel)) return std::nullopt;
    return mine;
  }

  /// A lane calls this to take the request. Returns false if the request is no longer posted.
  bool take() noexcept {
    return phase(change([](std::uint64_t word) { return phase(word) == posted ? with(word, taken) : word; })) == posted;
  }

  /// Returns the answer; nullopt if there is no answer yet; `retry` if the request was taken back.
  [[nodiscard]] std::optional<fault_verdict> answered(ticket mine) const noexcept {
    const std::uint64_t word = word_.load(std::memory_order_acquire);
    if (phase(word) == refuse_it && same(word, mine)) return fault_verdict::not_ours;
    return waited_for(word, mine) ? std::nullopt : std::optional(fault_verdict::retry);
  }

  /// Sleeps until the request is answered or taken back.
  void sleep(ticket mine) noexcept {
    std::uint64_t word = word_.load(std::memory_order_acquire);
    while (waited_for(word, mine)) {
      const std::uint64_t asleep = word | sleeper_bit;
      if (word != asleep && !word_.compare_exchange_strong(word, asleep, std::memory_order_acq_rel)) continue;
      Memory::sleep(word_, asleep);
      word = word_.load(std::memory_order_acquire);
    }
  }

  /// Frees the request; called by its thread after the thread has read the answer. Returns true if this call freed the
  /// request.
  bool leave(ticket mine) noexcept {
    std::uint64_t word = word_.load(std::memory_order_relaxed);
    const bool over = same(word, mine) && (phase(word) == retry_it || phase(word) == refuse_it);
    return over && word_.compare_exchange_strong(word, freed(word), std::memory_order_acq_rel);
  }

  /// Takes the request back, as described above. Returns true if the request is free now.
  bool take_back() noexcept {
    const auto with_a_lane = [](std::uint64_t word) { return phase(word) == taken || phase(word) == abandoned; };
    return !with_a_lane(
        change([&](std::uint64_t word) { return with_a_lane(word) ? with(word, abandoned) : freed(word); }));
  }

  [[nodiscard]] bool is_free() const noexcept { return phase(word_.load(std::memory_order_acquire)) == free; }

 private:
  enum : std::uint64_t { free, posted, taken, abandoned, retry_it, refuse_it, phase_mask = 7 };
  static constexpr std::uint64_t sleeper_bit = 8;
  static constexpr std::uint64_t write_bit = 16;
  static constexpr std::uint64_t announced_bit = 32;
  static constexpr std::uint64_t generation_unit = 64;
  static constexpr unsigned address_shift = 16;  // addresses of programs have 47 bits
  static constexpr std::uint64_t generation_mask = (std::uint64_t{1} << address_shift) - generation_unit;

  static std::uint64_t phase(std::uint64_t word) noexcept { return word & phase_mask; }
  static std::uint64_t with(std::uint64_t word, std::uint64_t next) noexcept { return (word & ~phase_mask) | next; }
  static std::uint64_t freed(std::uint64_t word) noexcept { return (word & generation_mask) | free; }
  static bool same(std::uint64_t word, ticket mine) noexcept {
    return ((word ^ mine) & ~(phase_mask | sleeper_bit)) == 0;
  }
  static bool waited_for(std::uint64_t word, ticket mine) noexcept {
    return same(word, mine) && (phase(word) == posted || phase(word) == taken);
  }

  /// Replaces the word by next(word) atomically, and returns the old word. Wakes the thread that waits for the request,
  /// if the thread may be asleep and the request has been answered or taken back.
  template <class Next>
  std::uint64_t change(Next next) noexcept {
    std::uint64_t word = word_.load(std::memory_order_acquire);
    while (!word_.compare_exchange_weak(word, next(word), std::memory_order_acq_rel)) {
    }
    if ((word & sleeper_bit) != 0 && phase(next(word)) != taken) Memory::wake(word_);
    return word;
  }

  typename Memory::template atomic<std::uint64_t> word_{free};
};

using request = basic_request<os::hardware>;

}  // namespace hpe::fault
