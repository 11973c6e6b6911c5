#pragma once

/// Which functions of a program call which other functions.

#include "runtime/ptx/program/program.h"

namespace hpe::ptx {

/// Whether an instruction is a meeting, at which threads leave compiled code.
[[nodiscard]] bool is_meeting(const instruction& i);
/// Whether a meeting is a barrier of all threads of a block that returns no results to them.
[[nodiscard]] bool is_block_barrier(const instruction& i);

/// Whether threads meet or end in a function or in its callees. A call through a pointer counts as a call in which no
/// threads meet; the compiler checks whether that is true (flatten).
class call_graph {
 public:
  explicit call_graph(const program& p);
  [[nodiscard]] bool meets(std::uint32_t function) const { return meets_[function]; }
  /// Whether threads of a warp meet, without the other threads of the block, in a function or in its callees.
  [[nodiscard]] bool meets_in_warps(std::uint32_t function) const { return meets_in_warps_[function]; }
  [[nodiscard]] bool is_recursive(std::uint32_t function) const;
  /// Functions whose address is taken anywhere, so that calls through pointers may reach them.
  [[nodiscard]] const std::vector<std::uint32_t>& targets_of_pointers() const { return pointed_; }
  [[nodiscard]] const std::vector<std::uint32_t>& callees(std::uint32_t function) const { return callees_[function]; }
  [[nodiscard]] bool calls_pointers(std::uint32_t function) const { return calls_pointers_[function]; }

 private:
  std::vector<std::vector<std::uint32_t>> callees_;
  std::vector<bool> meets_, meets_in_warps_, calls_pointers_;
  std::vector<std::uint32_t> pointed_;
};

}  // namespace hpe::ptx
