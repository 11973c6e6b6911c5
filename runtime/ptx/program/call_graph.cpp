#include "runtime/ptx/program/call_graph.h"

#include <algorithm>

namespace hpe::ptx {

bool is_meeting(const instruction& i) {
  return i.kind == kind::warp || i.kind == kind::barrier || i.kind == kind::matrix || i.kind == kind::pause;
}

bool is_block_barrier(const instruction& i) {
  return i.kind == kind::barrier && !i.has(modifier::cluster) && !i.has(modifier::red) && !i.has(modifier::arrive) &&
         i.sources[1].what == operand::kind::none;
}

call_graph::call_graph(const program& p)
    : callees_(p.functions.size()),
      meets_(p.functions.size()),
      meets_in_warps_(p.functions.size()),
      calls_pointers_(p.functions.size()) {
  std::vector<bool> pointed(p.functions.size());
  for (std::uint32_t n = 0; n < p.functions.size(); ++n) {
    for (const instruction& i : p.functions[n]->code) {
      if (is_meeting(i) || (i.kind == kind::exit && !p.functions[n]->is_kernel)) meets_[n] = true;
      if (i.kind == kind::warp) meets_in_warps_[n] = true;
      if (i.kind == kind::call && i.sources.empty()) callees_[n].push_back(i.callee);
      if (i.kind == kind::call && !i.sources.empty()) calls_pointers_[n] = true;
      for (const operand& o : i.sources)
        if (o.what == operand::kind::function) pointed[o.index] = true;
    }
  }
  for (const symbol& s : p.symbols)
    for (const symbol::relocation& r : s.relocations)
      if (r.is_function) pointed[r.target] = true;
  for (std::uint32_t n = 0; n < pointed.size(); ++n)
    if (pointed[n] && p.functions[n]->is_defined && !p.functions[n]->is_kernel) pointed_.push_back(n);
  for (std::vector<bool>* const holds : {&meets_, &meets_in_warps_})
    for (bool changed = true; changed;) {
      changed = false;
      for (std::uint32_t n = 0; n < callees_.size(); ++n) {
        if ((*holds)[n]) continue;
        if (!std::any_of(callees_[n].begin(), callees_[n].end(), [&](std::uint32_t c) { return (*holds)[c]; }))
          continue;
        (*holds)[n] = true;
        changed = true;
      }
    }
}

bool call_graph::is_recursive(std::uint32_t function) const {
  std::vector<bool> seen(callees_.size());
  std::vector<std::uint32_t> open = callees_[function];
  while (!open.empty()) {
    const std::uint32_t next = open.back();
    open.pop_back();
    if (next == function) return true;
    if (seen[next]) continue;
    seen[next] = true;
    open.insert(open.end(), callees_[next].begin(), callees_[next].end());
  }
  return false;
}

}  // namespace hpe::ptx
