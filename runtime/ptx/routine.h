#pragma once

/// Instructions that one function executes as a whole, for interpreter and compiled code alike: barriers in shared
/// memory (mbarrier), bulk copies and stores that such a barrier counts, addresses in a cluster.
///
/// What is asynchronous on a GPU is complete when the instruction has been executed, so the barrier hears of it at
/// once.

#include "runtime/ptx/block.h"

namespace hpe::ptx {

inline constexpr std::size_t most_routine_sources = 8;

/// sources are the values of i.sources, addresses as the instruction has them; returns the value of the one result, if
/// there is one. Stops the kernel where an address is wrong.
std::uint64_t run_routine(block_context& block, std::uint32_t thread, const instruction& i,
                          const std::uint64_t* sources);

/// A barrier in shared memory: the 64 bits that mbarrier instructions work on, which PTX leaves open (PTX ISA, section
/// "Parallel Synchronization and Communication Instructions: mbarrier"). A phase is complete when nobody is left to
/// arrive and no bytes are left to come; the next begins with all that are expected.
class barrier_word {
 public:
  static constexpr std::uint64_t most_arrivals = (1U << 20) - 1;
  static constexpr std::int64_t most_bytes = (1 << 20) - 1;

  explicit barrier_word(std::uint64_t bits) : bits_(bits) {}
  /// 1 <= count <= most_arrivals.
  [[nodiscard]] static barrier_word of(std::uint64_t count) { return barrier_word(count | count << 20); }

  [[nodiscard]] std::uint64_t bits() const { return bits_; }
  [[nodiscard]] std::uint64_t pending() const { return bits_ & most_arrivals; }
  [[nodiscard]] std::uint64_t expected() const { return bits_ >> 20 & most_arrivals; }
  [[nodiscard]] std::int64_t bytes() const { return static_cast<std::int64_t>(bits_ << 2) >> 42; }
  /// Of the phase that is not complete: 0, 1, 0, ...
  [[nodiscard]] std::uint64_t parity() const { return bits_ >> 62 & 1; }

  /// The following say whether it was possible: more cannot arrive than are pending.
  [[nodiscard]] bool arrive(std::uint64_t count);
  [[nodiscard]] bool drop(std::uint64_t count);
  /// Bytes to come, or, negative, that have come.
  [[nodiscard]] bool expect(std::int64_t bytes);

 private:
  void set(std::uint64_t pending, std::uint64_t expected, std::int64_t bytes, std::uint64_t parity);

  std::uint64_t bits_;
};

}  // namespace hpe::ptx
