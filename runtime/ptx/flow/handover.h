#pragma once

/// The places at which a block can leave the interpreter and continue in native code (compiler/kernel_trial.h): the
/// meetings of the kernel, and one place in each loop.

#include <atomic>

#include "runtime/ptx/program/call_graph.h"

namespace hpe::ptx {

/// Returns whether blocks of a kernel can leave the interpreter. A thread must not be inside of a function then, so the
/// kernel must not call functions of the program.
[[nodiscard]] bool can_hand_over(const program& p, const function& kernel);

/// Returns the code with a stop (opcode::handover) before each jump backwards. A thread waits at a stop only when its
/// block leaves the interpreter. Native code begins at stops, but never waits there.
[[nodiscard]] std::vector<instruction> with_stops(const std::vector<instruction>& code);

/// Counts the instructions that interpreters execute for a kernel. Thread-safe.
class work_meter {
 public:
  /// `most`: how many instructions threads may execute before the next blocks begin in native code.
  explicit work_meter(std::uint64_t most) : most_(most) {}
  void add(std::uint64_t instructions) noexcept { done_.fetch_add(instructions, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t done() const noexcept { return done_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t most() const noexcept { return most_.load(std::memory_order_relaxed); }
  /// Lets all blocks stay in the interpreter.
  void lift_limit() noexcept { most_.store(no_limit, std::memory_order_relaxed); }
  /// Whether the next blocks begin in native code.
  [[nodiscard]] bool is_used_up() const noexcept { return done() >= most(); }
  /// Whether blocks that have begun leave the interpreter too. Most blocks end earlier.
  [[nodiscard]] bool is_exceeded() const noexcept { return done() >= 2 * most(); }

 private:
  static constexpr std::uint64_t no_limit = ~std::uint64_t{0} / 2;

  std::atomic<std::uint64_t> most_;
  std::atomic<std::uint64_t> done_{0};
};

}  // namespace hpe::ptx
