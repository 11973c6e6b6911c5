#include "runtime/ptx/flow/flat_kernel.h"

#include <algorithm>
#include <functional>

namespace hpe::ptx {

namespace {

std::uint32_t number_of(const program& p, const function& f) {
  for (std::uint32_t n = 0; n < p.functions.size(); ++n)
    if (p.functions[n].get() == &f) return n;
  return 0;
}

// Copies the code of functions into one list. Renumbers registers, offsets and labels, so that two functions share
// none.
class flattener {
 public:
  flattener(const program& p, const call_graph& graph, flat_kernel& into) : program_(p), graph_(graph), into_(into) {}

  // `formals`: the offset of the function's parameters in scratch memory; empty for the kernel itself.
  bool append(const function& f, std::optional<std::uint32_t> formals) {
    const auto first_register = static_cast<std::uint32_t>(into_.registers.size());
    into_.registers.insert(into_.registers.end(), f.registers.begin(), f.registers.end());
    const auto rounded = [](std::uint32_t n) { return (n + 63) / 64 * 64; };
    const std::uint32_t local = rounded(into_.local_size), scratch = rounded(into_.scratch_size);
    into_.local_size = local + f.local_size;
    into_.scratch_size = scratch + f.scratch_size;
    std::vector<std::uint32_t> positions(f.code.size() + 1);
    std::vector<std::size_t> jumps, returns;
    const auto moved = [&](operand& o) {
      if (o.is_register()) o.index += first_register;
      if (o.what == operand::kind::local) o.value += local;
      if (o.what == operand::kind::scratch) o.value += scratch;
      if (o.what == operand::kind::formal && formals) {
        o.what = operand::kind::scratch;
        o.value += *formals;
      }
    };
    for (std::size_t n = 0; n < f.code.size(); ++n) {
      positions[n] = static_cast<std::uint32_t>(into_.code.size());
      instruction i = f.code[n];
      moved(i.guard);
      for (operand& o : i.results) moved(o);
      for (operand& o : i.sources) moved(o);
      for (argument& a : i.arguments) a.offset += scratch;
      for (argument& r : i.returns) r.offset += scratch;
      if (i.kind == kind::ret) {
        i.op = formals ? opcode::bra : opcode::exit;
        i.kind = formals ? kind::branch : kind::exit;
        if (formals) returns.push_back(into_.code.size());
      } else if (!i.targets.empty()) {
        jumps.push_back(into_.code.size());
      } else if (i.kind == kind::call && i.sources.empty() && graph_.meets(i.callee)) {
        if (!append_call(i)) return false;
        continue;
      }
      into_.code.push_back(std::move(i));
    }
    positions[f.code.size()] = static_cast<std::uint32_t>(into_.code.size());
    for (const std::size_t j : jumps)
      for (std::uint32_t& target : into_.code[j].targets) target = positions[target];
    for (const std::size_t r : returns) into_.code[r].targets = {static_cast<std::uint32_t>(into_.code.size())};
    return true;
  }

 private:
  bool append_call(const instruction& call) {
    if (graph_.is_recursive(call.callee) || ++depth_ > 64 || into_.code.size() > 200000) return false;
    const function& callee = *program_.functions[call.callee];
    std::size_t skip = 0;
    if (call.guard.is_register()) {
      instruction branch = call;
      branch.op = opcode::bra;
      branch.kind = kind::branch;
      branch.guard.negated = !branch.guard.negated;
      skip = into_.code.size() + 1;
      into_.code.push_back(branch);
    }
    into_.scratch_size = (into_.scratch_size + 63) / 64 * 64;
    const std::uint32_t formals = into_.scratch_size;
    into_.scratch_size += callee.formals_size;
    into_.scratch_is_local = true;
    std::size_t n = 0;
    for (const formal_parameter& p : callee.formals) {
      if (p.is_result || n >= call.arguments.size()) continue;
      const argument& a = call.arguments[n++];
      copy(call, formals + p.offset, a.offset, std::min(a.size, p.size));
    }
    if (!append(callee, formals)) return false;
    n = 0;
    for (const formal_parameter& p : callee.formals) {
      if (!p.is_result || n >= call.returns.size()) continue;
      const argument& r = call.returns[n++];
      copy(call, r.offset, formals + p.offset, std::min(r.size, p.size));
    }
    if (skip != 0) into_.code[skip - 1].targets = {static_cast<std::uint32_t>(into_.code.size())};
    // This instruction is the target of the function's returns, and of the jump that skips the call.
    instruction nothing = call;
    nothing.op = opcode::pmevent;
    nothing.kind = kind::nothing;
    nothing.guard = {};
    into_.code.push_back(nothing);
    --depth_;
    return true;
  }

  void copy(const instruction& call, std::uint32_t to, std::uint32_t from, std::uint32_t bytes) {
    for (std::uint32_t done = 0; done < bytes;) {
      const std::uint32_t left = bytes - done;
      const type t = left >= 8 ? type::b64 : left >= 4 ? type::b32 : left >= 2 ? type::b16 : type::b8;
      operand value, place;
      value.what = operand::kind::reg;
      value.index = static_cast<std::uint32_t>(into_.registers.size());
      into_.registers.push_back(t == type::b8 ? type::b16 : t);
      place.what = operand::kind::scratch;
      instruction move;
      move.line = call.line;
      move.types[0] = t;
      move.op = opcode::ld;
      move.kind = kind::load;
      move.modifiers.add(modifier::param);
      move.results = {value};
      place.value = from + done;
      move.sources = {place};
      into_.code.push_back(move);
      move.op = opcode::st;
      move.kind = kind::store;
      move.results.clear();
      place.value = to + done;
      move.sources = {place, value};
      into_.code.push_back(std::move(move));
      done += bytes_of(t);
    }
  }

  const program& program_;
  const call_graph& graph_;
  flat_kernel& into_;
  unsigned depth_ = 0;
};

}  // namespace

std::optional<flat_kernel> flatten(const program& p, const call_graph& graph, const function& kernel) {
  // If the kernel or a callee calls through a pointer, no function that the pointer may reach may contain a meeting.
  std::vector<bool> seen(p.functions.size());
  std::vector<std::uint32_t> open{number_of(p, kernel)};
  while (!open.empty()) {
    const std::uint32_t f = open.back();
    open.pop_back();
    if (seen[f]) continue;
    seen[f] = true;
    open.insert(open.end(), graph.callees(f).begin(), graph.callees(f).end());
    if (!graph.calls_pointers(f)) continue;
    for (const std::uint32_t target : graph.targets_of_pointers()) {
      if (graph.meets(target)) return std::nullopt;
      open.push_back(target);
    }
  }
  flat_kernel flat;
  flat.origin = &kernel;
  if (!flattener(p, graph, flat).append(kernel, std::nullopt)) return std::nullopt;
  return flat;
}

}  // namespace hpe::ptx
