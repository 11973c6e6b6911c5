#pragma once

/// A kernel prepared for compilation: functions in which threads meet are inlined, so that every meeting is in the
/// kernel's own code.

#include <optional>

#include "runtime/ptx/program/call_graph.h"

namespace hpe::ptx {

struct flat_kernel {
  const function* origin = nullptr;
  std::vector<type> registers;
  std::vector<instruction> code;  // ends with an exit or jump on every path
  std::uint32_t local_size = 0;
  std::uint32_t scratch_size = 0;
  bool scratch_is_local = false;  // scratch is placed after local memory, so that its content survives meetings
};

/// Returns the kernel with its callees inlined. Empty if the kernel cannot be compiled because a function in which
/// threads meet is recursive or is called through a pointer.
[[nodiscard]] std::optional<flat_kernel> flatten(const program& p, const call_graph& graph, const function& kernel);

}  // namespace hpe::ptx
