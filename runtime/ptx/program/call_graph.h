#pragma once

/// Which functions of a program call which.

#include "runtime/ptx/program/program.h"

namespace hpe::ptx {

/// Whether an instruction is a meeting, at which threads leave compiled code.
[[nodiscard]] bool is_meeting(const instruction& i);
/// Whether a meeting is a barrier of all threads of a block, from which they go on without results.
[[nodiscard]] bool is_block_barrier(const instruction& i);

/// Whether threads meet or end in a function or in its callees. Calls through pointers count as not meeting; the
/// compiler checks them (flatten).
class call_graph {
 public:
  explicit call_graph(const program& p);
  [[nodiscard]] bool meets(std::uint32_t function) const { return meets_[function]; }
  [[nodiscard]] bool is_recursive(std::uint32_t function) const;
  /// Functions whose address is taken anywhere, so that calls through pointers may reach them.
  [[nodiscard]] const std::vector<std::uint32_t>& targets_of_pointers() const { return pointed_; }
  [[nodiscard]] const std::vector<std::uint32_t>& callees(std::uint32_t function) const { return callees_[function]; }
  [[nodiscard]] bool calls_pointers(std::uint32_t function) const { return calls_pointers_[function]; }

 private:
  std::vector<std::vector<std::uint32_t>> callees_;
  std::vector<bool> meets_, calls_pointers_;
  std::vector<std::uint32_t> pointed_;
};

}  // namespace hpe::ptx
