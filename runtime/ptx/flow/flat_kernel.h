#pragma once

/// A kernel prepared for compilation: functions that contain meetings (call_graph.h) are inlined, so that the kernel's
/// own code contains all meetings.

#include <optional>

#include "runtime/ptx/program/call_graph.h"

namespace hpe::ptx {

struct flat_kernel {
  const function* origin = nullptr;
  std::vector<type> registers;
  std::vector<instruction> code;  // ends with an exit or jump on every path
  std::uint32_t local_size = 0;
  std::uint32_t scratch_size = 0;
  bool scratch_is_local =
      false;  // whether scratch memory follows local memory, so that scratch memory keeps its content at meetings
};

/// Returns the kernel, with the callees that contain meetings inlined. Empty if such a callee is recursive or may be
/// called through a pointer, or if calls would be inlined more than 64 levels deep or into more than 200000
/// instructions; hpe cannot compile the kernel then.
[[nodiscard]] std::optional<flat_kernel> flatten(const program& p, const call_graph& graph, const function& kernel);

}  // namespace hpe::ptx
