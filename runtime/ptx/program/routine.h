#pragma once

/// Instructions that both the interpreter and compiled code execute by calling run_routine: barriers in shared memory
/// (mbarrier), bulk copies and stores that signal their completion at an mbarrier, and addresses in a cluster.
///
/// Copies and stores that are asynchronous on a GPU are synchronous in hpe: when run_routine returns, the bytes are
/// copied and the mbarrier is signalled.

#include "runtime/ptx/execution/block.h"

namespace hpe::ptx {

inline constexpr std::size_t most_routine_sources = 8;

/// Executes an instruction. `sources` are the values of i.sources; addresses are in the state space that the
/// instruction names. Returns the instruction's result, or 0 if it has none. Stops the kernel if an address is invalid
/// or the state of an mbarrier does not allow the operation.
std::uint64_t run_routine(block_context& block, std::uint32_t thread, const instruction& i,
                          const std::uint64_t* sources);

/// The 64 bits of an mbarrier. PTX does not define their format (PTX ISA, section "Parallel Synchronization and
/// Communication Instructions: mbarrier"). A phase completes when no arrivals and no bytes are pending; the next phase
/// begins with the expected number of arrivals.
class barrier_word {
 public:
  static constexpr std::uint64_t most_arrivals = (1U << 20) - 1;
  static constexpr std::int64_t most_bytes = (1 << 20) - 1;

  explicit barrier_word(std::uint64_t bits) : bits_(bits) {}
  /// Returns a barrier for `count` arrivals, with 1 <= count <= most_arrivals.
  [[nodiscard]] static barrier_word of(std::uint64_t count) { return barrier_word(count | count << 20); }

  [[nodiscard]] std::uint64_t bits() const { return bits_; }
  [[nodiscard]] std::uint64_t pending() const { return bits_ & most_arrivals; }
  [[nodiscard]] std::uint64_t expected() const { return bits_ >> 20 & most_arrivals; }
  [[nodiscard]] std::int64_t bytes() const { return static_cast<std::int64_t>(bits_ << 2) >> 42; }
  /// Returns the parity of the current phase: 0, 1, 0, ...
  [[nodiscard]] std::uint64_t parity() const { return bits_ >> 62 & 1; }

  /// arrive, drop and expect return false if the operation is not possible, for example if `count` is larger than the
  /// number of pending arrivals.
  [[nodiscard]] bool arrive(std::uint64_t count);
  [[nodiscard]] bool drop(std::uint64_t count);
  /// Adds `bytes` to the number of pending bytes. A negative number reports bytes that have arrived.
  [[nodiscard]] bool expect(std::int64_t bytes);

 private:
  void set(std::uint64_t pending, std::uint64_t expected, std::int64_t bytes, std::uint64_t parity);

  std::uint64_t bits_;
};

}  // namespace hpe::ptx
