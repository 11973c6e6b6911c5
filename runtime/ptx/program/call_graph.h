#pragma once

/// The call graph of a program: which functions call which other functions.

#include "runtime/ptx/program/ptx_program.h"

namespace hpe::ptx {

/// Returns whether an instruction is a meeting. A meeting is an instruction at which threads wait for each other, or at
/// which a thread lets other threads run: a barrier, a warp instruction such as a shuffle or a vote, a matrix
/// instruction, or a pause.
[[nodiscard]] bool is_meeting(const instruction& i);
/// Returns whether the compiler ends a region of code at the instruction (regions.h).
[[nodiscard]] inline bool ends_region(const instruction& i) {
  return i.kind == kind::exit || i.kind == kind::ret || is_meeting(i);
}
/// Returns whether the instruction is a barrier for all threads of a block that returns no result, such as
/// __syncthreads().
[[nodiscard]] bool is_block_barrier(const instruction& i);

/// The calls between the functions of a program, and the functions that contain meetings. meets() returns whether the
/// function or one of its callees contains a meeting or ends threads. The graph assumes that functions called through a
/// pointer contain no meetings; flatten checks this assumption.
class call_graph {
 public:
  explicit call_graph(const program& p);
  [[nodiscard]] bool meets(std::uint32_t function) const { return meets_[function]; }
  /// Returns whether a function or one of its callees contains a shuffle, a vote or another meeting of a single warp
  /// (kind::warp). Matrix instructions do not count.
  [[nodiscard]] bool meets_in_warps(std::uint32_t function) const { return meets_in_warps_[function]; }
  [[nodiscard]] bool is_recursive(std::uint32_t function) const;
  /// Returns the functions whose address the program takes. A call through a pointer may call any of these functions.
  [[nodiscard]] const std::vector<std::uint32_t>& targets_of_pointers() const { return pointed_; }
  [[nodiscard]] const std::vector<std::uint32_t>& callees(std::uint32_t function) const { return callees_[function]; }
  [[nodiscard]] bool calls_pointers(std::uint32_t function) const { return calls_pointers_[function]; }

 private:
  std::vector<std::vector<std::uint32_t>> callees_;
  std::vector<bool> meets_, meets_in_warps_, calls_pointers_;
  std::vector<std::uint32_t> pointed_;
};

}  // namespace hpe::ptx
