// Lets warps run in lockstep, for code that was written for GPUs before Volta. Between two accesses to memory, a thread
// changes only its own registers, which no other thread sees. Therefore it suffices that lanes meet before each store,
// and before each load that may follow a store. The lanes then read and write memory as if they executed every
// instruction together.

#include "runtime/ptx/build/builder.h"

namespace hpe::ptx {

namespace {

// Returns whether other threads may see the access, or may change the value that it reads.
bool is_seen_by_others(const instruction& i) {
  switch (i.kind) {
    case kind::load:
      if (i.modifiers.one_of(modifier::param, modifier::param_entry, modifier::param_func, modifier::local,
                             modifier::constant, modifier::nc) != modifier::count)
        return false;
      return i.sources[0].what != operand::kind::formal && i.sources[0].what != operand::kind::scratch;
    case kind::store:
      if (i.modifiers.one_of(modifier::param, modifier::param_func, modifier::local) != modifier::count) return false;
      return i.sources[0].what != operand::kind::scratch;
    case kind::atomic:
    case kind::copy_async:
    case kind::texture:
    case kind::routine: return true;
    default: return false;
  }
}

}  // namespace

void insert_convergence(function& f) {
  std::vector<bool> is_target(f.code.size() + 1);
  for (const instruction& i : f.code)
    for (const std::uint32_t target : i.targets) is_target[target] = true;
  std::vector<instruction> code;
  std::vector<std::uint32_t> positions(f.code.size() + 1);
  // Two loads need no meeting between them, unless a store, a jump, a label or a call is between them.
  bool follows_loads = false;
  for (std::size_t n = 0; n < f.code.size(); ++n) {
    instruction& i = f.code[n];
    positions[n] = static_cast<std::uint32_t>(code.size());
    if (is_target[n]) follows_loads = false;
    if (is_seen_by_others(i)) {
      const bool is_load = i.kind == kind::load;
      if (!is_load || !follows_loads) {
        instruction meeting;
        meeting.op = opcode::converge;
        meeting.kind = kind::warp;
        meeting.line = i.line;
        meeting.source_file = i.source_file;
        meeting.source_line = i.source_line;
        meeting.text_begin = i.text_begin;
        meeting.text_end = i.text_end;
        code.push_back(std::move(meeting));
      }
      follows_loads = is_load;
    }
    if (!i.targets.empty() || i.kind == kind::call) follows_loads = false;
    code.push_back(std::move(i));
  }
  positions[f.code.size()] = static_cast<std::uint32_t>(code.size());
  for (instruction& i : code)
    for (std::uint32_t& target : i.targets) target = positions[target];
  f.code = std::move(code);
}

}  // namespace hpe::ptx
