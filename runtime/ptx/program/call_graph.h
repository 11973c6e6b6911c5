#pragma once

/// The call graph of a program: which functions call which other functions.

#include "runtime/ptx/program/program.h"

namespace hpe::ptx {

/// Returns whether an instruction is a meeting, at which threads leave compiled code.
[[nodiscard]] bool is_meeting(const instruction& i);
/// Returns whether the code before the instruction and the code after it are in different regions of the compiler.
[[nodiscard]] inline bool ends_region(const instruction& i) {
  return i.kind == kind::exit || i.kind == kind::ret || is_meeting(i);
}
/// Returns whether a meeting is a barrier of all threads of a block that returns no results to them.
[[nodiscard]] bool is_block_barrier(const instruction& i);

/// The calls between functions, and in which functions threads meet. meets(): threads meet or end in the function or in
/// its callees. A call through a pointer counts as a call in which no threads meet; the compiler checks whether that is
/// true (flatten).
class call_graph {
 public:
  explicit call_graph(const program& p);
  [[nodiscard]] bool meets(std::uint32_t function) const { return meets_[function]; }
  /// Returns whether threads of a warp meet, without the other threads of the block, in a function or in its callees.
  [[nodiscard]] bool meets_in_warps(std::uint32_t function) const { return meets_in_warps_[function]; }
  [[nodiscard]] bool is_recursive(std::uint32_t function) const;
  /// The functions whose address the program takes, so that calls through pointers may reach them.
  [[nodiscard]] const std::vector<std::uint32_t>& targets_of_pointers() const { return pointed_; }
  [[nodiscard]] const std::vector<std::uint32_t>& callees(std::uint32_t function) const { return callees_[function]; }
  [[nodiscard]] bool calls_pointers(std::uint32_t function) const { return calls_pointers_[function]; }

 private:
  std::vector<std::vector<std::uint32_t>> callees_;
  std::vector<bool> meets_, meets_in_warps_, calls_pointers_;
  std::vector<std::uint32_t> pointed_;
};

}  // namespace hpe::ptx
