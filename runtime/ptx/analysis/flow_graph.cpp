#include "runtime/ptx/analysis/flow_graph.h"

#include <algorithm>

namespace hpe::ptx::analysis {

namespace {

bool leaves(const instruction& i) { return i.kind == kind::ret || i.kind == kind::exit || i.kind == kind::trap; }

bool goes_on(const instruction& i) { return i.guard.is_register() || (i.targets.empty() && !leaves(i)); }

}  // namespace

flow_graph::flow_graph(const std::vector<instruction>& code) {
  if (code.empty()) return;
  find_blocks(code);
  find_order();
  find_dominators();
  number_dominators();
  find_loops();
}

void flow_graph::find_blocks(const std::vector<instruction>& code) {
  std::vector<bool> begins(code.size() + 1);
  begins[0] = true;
  for (std::size_t n = 0; n < code.size(); ++n) {
    for (const std::uint32_t target : code[n].targets) begins[target] = true;
    if (!code[n].targets.empty() || leaves(code[n])) begins[n + 1] = true;
  }
  block_of_.resize(code.size());
  for (std::uint32_t n = 0; n < code.size(); ++n) {
    if (begins[n]) blocks_.emplace_back().first = n;
    block_of_[n] = static_cast<std::uint32_t>(blocks_.size() - 1);
    blocks_.back().last = n + 1;
  }
  for (flow_block& b : blocks_) {
    const instruction& end = code[b.last - 1];
    std::vector<std::uint32_t>& successors = b.successors;
    // A target may be a label after the last instruction.
    for (const std::uint32_t target : end.targets)
      if (target < code.size()) successors.push_back(block_of_[target]);
    if (goes_on(end) && b.last < code.size()) successors.push_back(block_of_[b.last]);
    std::sort(successors.begin(), successors.end());
    successors.erase(std::unique(successors.begin(), successors.end()), successors.end());
  }
}

void flow_graph::find_order() {
  struct visit {
    std::uint32_t block, next;
  };
  std::vector<visit> stack{{0, 0}};
  blocks_[0].is_reachable = true;
  while (!stack.empty()) {
    visit& top = stack.back();
    const std::vector<std::uint32_t>& successors = blocks_[top.block].successors;
    if (top.next == successors.size()) {
      order_.push_back(top.block);
      stack.pop_back();
      continue;
    }
    const std::uint32_t next = successors[top.next++];
    if (blocks_[next].is_reachable) continue;
    blocks_[next].is_reachable = true;
    stack.push_back({next, 0});
  }
  std::reverse(order_.begin(), order_.end());
  for (std::uint32_t n = 0; n < order_.size(); ++n) blocks_[order_[n]].order = n;
  for (const std::uint32_t b : order_)
    for (const std::uint32_t s : blocks_[b].successors) blocks_[s].predecessors.push_back(b);
}

// Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm", 2001.
void flow_graph::find_dominators() {
  constexpr std::uint32_t none = ~0U;
  for (flow_block& b : blocks_) b.dominator = none;
  blocks_[0].dominator = 0;
  const auto common = [&](std::uint32_t a, std::uint32_t b) {
    while (a != b) {
      while (blocks_[a].order > blocks_[b].order) a = blocks_[a].dominator;
      while (blocks_[b].order > blocks_[a].order) b = blocks_[b].dominator;
    }
    return a;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (const std::uint32_t b : order_) {
      if (b == 0) continue;
      std::uint32_t found = none;
      for (const std::uint32_t p : blocks_[b].predecessors)
        if (blocks_[p].dominator != none) found = found == none ? p : common(found, p);
      changed |= found != blocks_[b].dominator;
      blocks_[b].dominator = found;
    }
  }
}

void flow_graph::number_dominators() {
  std::vector<std::vector<std::uint32_t>> below(blocks_.size());
  for (const std::uint32_t b : order_)
    if (b != 0) below[blocks_[b].dominator].push_back(b);
  std::uint32_t time = 0;
  std::vector<std::uint32_t> stack{0};
  blocks_[0].opened = ++time;
  while (!stack.empty()) {
    const std::uint32_t top = stack.back();
    if (below[top].empty()) {
      blocks_[top].closed = ++time;
      stack.pop_back();
      continue;
    }
    const std::uint32_t next = below[top].back();
    below[top].pop_back();
    blocks_[next].opened = ++time;
    stack.push_back(next);
  }
}

// The function finds headers in reverse postorder, so a loop has a smaller number than the loops inside it.
void flow_graph::find_loops() {
  std::vector<bool> inside(blocks_.size());
  for (const std::uint32_t header : order_) {
    flow_loop found{header, {header}, {}, 0};
    for (const std::uint32_t p : blocks_[header].predecessors) {
      if (blocks_[p].order < blocks_[header].order) continue;
      if (dominates(header, p)) {
        found.latches.push_back(p);
      } else {
        irregular_ = true;
      }
    }
    if (found.latches.empty()) continue;
    if (loops_.size() == loop_set::capacity) {
      irregular_ = true;
      return;
    }
    std::fill(inside.begin(), inside.end(), false);
    inside[header] = true;
    std::vector<std::uint32_t> rest = found.latches;
    while (!rest.empty()) {
      const std::uint32_t b = rest.back();
      rest.pop_back();
      if (inside[b]) continue;
      inside[b] = true;
      found.blocks.push_back(b);
      rest.insert(rest.end(), blocks_[b].predecessors.begin(), blocks_[b].predecessors.end());
    }
    for (const flow_loop& other : loops_)
      if (std::find(other.blocks.begin(), other.blocks.end(), header) != other.blocks.end()) ++found.depth;
    for (const std::uint32_t b : found.blocks) blocks_[b].loops.add(static_cast<std::uint32_t>(loops_.size()));
    blocks_[header].heads = static_cast<std::uint32_t>(loops_.size());
    loops_.push_back(std::move(found));
  }
}

}  // namespace hpe::ptx::analysis
