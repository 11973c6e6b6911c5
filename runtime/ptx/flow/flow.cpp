#include "runtime/ptx/flow/flow.h"

#include <bit>

#include "runtime/ptx/flow/flat_kernel.h"

namespace hpe::ptx {

bool register_set::unite(const register_set& other) {
  bool changed = false;
  for (std::size_t n = 0; n < words_.size(); ++n) {
    const std::uint64_t both = words_[n] | other.words_[n];
    changed |= both != words_[n];
    words_[n] = both;
  }
  return changed;
}

std::vector<std::uint32_t> register_set::members() const {
  std::vector<std::uint32_t> result;
  for (std::size_t n = 0; n < words_.size(); ++n)
    for (std::uint64_t rest = words_[n]; rest != 0; rest &= rest - 1)
      result.push_back(static_cast<std::uint32_t>(n * 64 + static_cast<unsigned>(std::countr_zero(rest))));
  return result;
}

control_flow::control_flow(const std::vector<instruction>& code, std::size_t registers) : code_(code) {
  find_blocks();
  find_alive(registers);
}

namespace {

bool ends_block(const instruction& i) {
  return !i.targets.empty() || is_meeting(i) || i.kind == kind::ret || i.kind == kind::exit || i.kind == kind::trap;
}

bool goes_on(const instruction& i) {
  if (i.guard.is_register()) return true;
  return i.targets.empty() && i.kind != kind::ret && i.kind != kind::exit && i.kind != kind::trap;
}

}  // namespace

void control_flow::find_blocks() {
  std::vector<bool> begins(code_.size() + 1);
  begins[0] = true;
  for (std::size_t n = 0; n < code_.size(); ++n) {
    for (const std::uint32_t target : code_[n].targets) begins[target] = true;
    if (ends_block(code_[n])) begins[n + 1] = true;
  }
  block_of_.resize(code_.size() + 1);
  for (std::uint32_t n = 0; n < code_.size(); ++n) {
    if (begins[n]) blocks_.push_back({n, n, {}});
    block_of_[n] = static_cast<std::uint32_t>(blocks_.size() - 1);
    blocks_.back().last = n + 1;
  }
  block_of_[code_.size()] = static_cast<std::uint32_t>(blocks_.size());
  for (basic_block& b : blocks_) {
    const instruction& end = code_[b.last - 1];
    for (const std::uint32_t target : end.targets) b.successors.push_back(block_of_[target]);
    if (goes_on(end) && b.last < code_.size()) b.successors.push_back(block_of_[b.last]);
  }
}

void control_flow::find_alive(std::size_t registers) {
  std::vector<register_set> reads(blocks_.size(), register_set(registers)),
      writes(blocks_.size(), register_set(registers));
  for (std::size_t n = 0; n < blocks_.size(); ++n) {
    for (std::uint32_t at = blocks_[n].first; at < blocks_[n].last; ++at) {
      const instruction& i = code_[at];
      const auto read = [&](const operand& o) {
        if (o.is_register() && !writes[n].has(o.index)) reads[n].add(o.index);
      };
      read(i.guard);
      for (const operand& o : i.sources) read(o);
      for (const operand& o : i.results) {
        if (!o.is_register()) continue;
        // If the guard is false, the register keeps its old value, so a guarded write also counts as a read.
        if (i.guard.is_register()) {
          read(o);
        } else {
          writes[n].add(o.index);
        }
      }
    }
  }
  alive_ = reads;
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t n = blocks_.size(); n-- > 0;) {
      register_set after(registers);
      for (const std::uint32_t s : blocks_[n].successors) after.unite(alive_[s]);
      for (const std::uint32_t w : writes[n].members()) after.remove(w);
      changed |= alive_[n].unite(after);
    }
  }
}

}  // namespace hpe::ptx
