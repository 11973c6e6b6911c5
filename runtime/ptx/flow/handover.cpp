#include "runtime/ptx/flow/handover.h"

#include <algorithm>

namespace hpe::ptx {

bool can_hand_over(const program& p, const function& kernel) {
  return std::none_of(kernel.code.begin(), kernel.code.end(), [&](const instruction& i) {
    return i.kind == kind::call && (!i.sources.empty() || p.functions[i.callee]->system_call == builtin::none);
  });
}

std::vector<instruction> with_stops(const std::vector<instruction>& code) {
  std::vector<instruction> result;
  std::vector<std::uint32_t> positions(code.size() + 1);
  for (std::size_t n = 0; n < code.size(); ++n) {
    positions[n] = static_cast<std::uint32_t>(result.size());
    const bool is_back =
        std::any_of(code[n].targets.begin(), code[n].targets.end(), [n](std::uint32_t target) { return target <= n; });
    if (is_back && (n == 0 || code[n - 1].kind != kind::pause)) {
      instruction stop;
      stop.op = opcode::handover;
      stop.kind = kind::pause;
      stop.line = code[n].line;
      result.push_back(std::move(stop));
    }
    result.push_back(code[n]);
  }
  positions[code.size()] = static_cast<std::uint32_t>(result.size());
  for (instruction& i : result)
    for (std::uint32_t& target : i.targets) target = positions[target];
  return result;
}

}  // namespace hpe::ptx
