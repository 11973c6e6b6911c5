#include "runtime/ptx/flow/block_values.h"

#include <algorithm>
#include <set>

#include "runtime/ptx/execution/thread_memory.h"
#include "runtime/ptx/program/call_graph.h"
#include "runtime/ptx/program/special_register.h"

namespace hpe::ptx {

namespace {

constexpr std::uint32_t none = ~0U;

// Returns, for each block, the immediate post-dominator: the first block that is on all paths from the block to the end
// of the kernel. If no block is on all these paths, the result is the number of blocks, which stands for the end.
// (Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm", 2001, on the reversed graph.) A block that cannot
// reach the end has no immediate post-dominator.
std::vector<std::uint32_t> find_joins(const std::vector<basic_block>& blocks) {
  const auto end = static_cast<std::uint32_t>(blocks.size());
  std::vector<std::vector<std::uint32_t>> before(blocks.size() + 1);
  const auto successors = [&](std::uint32_t b) {
    return blocks[b].successors.empty() ? std::vector{end} : blocks[b].successors;
  };
  for (std::uint32_t b = 0; b < end; ++b)
    for (const std::uint32_t to : successors(b)) before[to].push_back(b);

  // `order` is the postorder of a depth-first search of the reversed graph, starting at `end`.
  std::vector<std::uint32_t> order, place(blocks.size() + 1, none);
  std::vector<bool> is_seen(blocks.size() + 1);
  std::vector<std::pair<std::uint32_t, std::size_t>> path{{end, 0}};
  is_seen[end] = true;
  while (!path.empty()) {
    const auto [b, next] = path.back();
    if (next < before[b].size()) {
      ++path.back().second;
      const std::uint32_t to = before[b][next];
      if (!is_seen[to]) path.emplace_back(to, 0);
      is_seen[to] = true;
      continue;
    }
    place[b] = static_cast<std::uint32_t>(order.size());
    order.push_back(b);
    path.pop_back();
  }

  std::vector<std::uint32_t> joins(blocks.size() + 1, none);
  joins[end] = end;
  const auto common = [&](std::uint32_t a, std::uint32_t b) {
    while (a != b) (place[a] < place[b] ? a : b) = joins[place[a] < place[b] ? a : b];
    return a;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (auto at = order.rbegin(); at != order.rend(); ++at) {
      if (*at == end) continue;
      std::uint32_t join = none;
      for (const std::uint32_t to : successors(*at))
        if (joins[to] != none) join = join == none ? to : common(join, to);
      changed |= join != joins[*at];
      joins[*at] = join;
    }
  }
  return joins;
}

// Returns whether an instruction has the same result in all threads if its operands are the same in all threads.
bool keeps_values(const instruction& i) {
  switch (i.kind) {
    case kind::pure: return true;
    case kind::special: {
      const auto which = static_cast<special_register>(i.sources[0].value);
      return which >= special_register::ntid_x && which <= special_register::nctaid_z;
    }
    case kind::load: return i.sources[0].what == operand::kind::formal;
    case kind::address_space: return i.op == opcode::cvta && window_of(i) == address_window::generic;
    default: return false;
  }
}

class block_values {
 public:
  block_values(const std::vector<instruction>& code, std::size_t registers, const control_flow& flow)
      : code_(code),
        flow_(flow),
        joins_(find_joins(flow.blocks())),
        differs_(registers),
        is_optional_(flow.blocks().size()) {}

  std::vector<bool> find() {
    for (bool changed = true; changed;) {
      changed = false;
      for (std::uint32_t b = 0; b < flow_.blocks().size(); ++b) {
        for (std::uint32_t n = flow_.blocks()[b].first; n < flow_.blocks()[b].last; ++n)
          changed |= look_at(code_[n], b);
        const instruction& end = code_[flow_.blocks()[b].last - 1];
        if (!differs(end) || flow_.blocks()[b].successors.empty() || !parts_.insert(b).second) continue;
        if (!end.guard.is_register() && flow_.blocks()[b].successors.size() == 1) continue;
        changed = true;
        if (!note_ways(b)) return std::vector<bool>(differs_.size());
      }
    }
    differs_.flip();
    return differs_;
  }

 private:
  [[nodiscard]] bool differs(const operand& o) const {
    return o.is_register() ? differs_[o.index] : o.what == operand::kind::local || o.what == operand::kind::scratch;
  }
  [[nodiscard]] bool differs(const instruction& i) const {
    return differs(i.guard) ||
           std::any_of(i.sources.begin(), i.sources.end(), [&](const operand& o) { return differs(o); });
  }

  // Marks the registers that an instruction writes, if their values may differ between threads. Returns whether a
  // register has become marked.
  bool look_at(const instruction& i, std::uint32_t block) {
    if (keeps_values(i) && !differs(i) && !is_optional_[block]) return false;
    bool changed = false;
    for (const operand& o : i.results) {
      if (!o.is_register() || differs_[o.index]) continue;
      differs_[o.index] = true;
      changed = true;
    }
    return changed;
  }

  // After a branch on values that differ between threads, marks the blocks that only some of the threads may reach.
  // Returns false if such a block contains a meeting or ends threads, if the branch itself is a meeting or ends
  // threads, or if its paths do not join.
  bool note_ways(std::uint32_t branch) {
    std::vector<std::uint32_t> open = flow_.blocks()[branch].successors;
    const instruction& leaves = code_[flow_.blocks()[branch].last - 1];
    if (joins_[branch] == none || is_meeting(leaves) || leaves.kind == kind::exit || leaves.kind == kind::ret)
      return false;
    std::vector<bool> is_seen(flow_.blocks().size());
    while (!open.empty()) {
      const std::uint32_t b = open.back();
      open.pop_back();
      if (b == joins_[branch] || is_seen[b]) continue;
      is_seen[b] = true;
      is_optional_[b] = true;
      const instruction& end = code_[flow_.blocks()[b].last - 1];
      const bool leaves = flow_.blocks()[b].successors.empty() && end.kind != kind::trap;
      if (is_meeting(end) || leaves) return false;
      open.insert(open.end(), flow_.blocks()[b].successors.begin(), flow_.blocks()[b].successors.end());
    }
    return true;
  }

  const std::vector<instruction>& code_;
  const control_flow& flow_;
  const std::vector<std::uint32_t> joins_;
  std::vector<bool> differs_;      // by register: the values may differ between threads
  std::vector<bool> is_optional_;  // by block: whether possibly only some threads reach the block
  std::set<std::uint32_t> parts_;  // blocks that end with a branch on values that differ between threads
};

}  // namespace

std::vector<bool> find_block_values(const std::vector<instruction>& code, std::size_t registers,
                                    const control_flow& flow) {
  constexpr std::size_t most =
      4096;  // limits the number of blocks, because the time grows with the square of this number
  const bool meets = std::any_of(code.begin(), code.end(), is_meeting);
  if (!meets || flow.blocks().size() > most) return std::vector<bool>(registers);
  return block_values(code, registers, flow).find();
}

}  // namespace hpe::ptx
