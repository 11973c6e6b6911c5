#pragma once

/// A kernel prepared for compilation: functions in which threads meet are inlined, so that every meeting is in the
/// kernel's own code.

#include <optional>

#include "runtime/ptx/program.h"

namespace hpe::ptx {

struct flat_kernel {
  const function* origin = nullptr;
  std::vector<type> registers;
  std::vector<instruction> code;  // ends with an exit or jump on every path
  std::uint32_t local_size = 0;
  std::uint32_t scratch_size = 0;
  bool scratch_is_local = false;  // scratch follows local memory, because its content must survive meetings
};

/// Whether threads meet or end in a function or in its callees. Unknown callees count as not meeting; flatten() checks
/// them.
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

/// None if the kernel cannot be compiled: if a function in which threads meet is recursive or is called through a
/// pointer.
[[nodiscard]] std::optional<flat_kernel> flatten(const program& p, const call_graph& graph, const function& kernel);

/// Whether an instruction is a meeting, at which threads leave compiled code.
[[nodiscard]] bool is_meeting(const instruction& i);

}  // namespace hpe::ptx
