#include "runtime/ptx/flow/idle_ways.h"

#include <algorithm>

#include "runtime/ptx/execution/thread_memory.h"
#include "runtime/ptx/program/call_graph.h"

namespace hpe::ptx {

namespace {

bool computes(const instruction& i) {
  switch (i.kind) {
    case kind::nothing:
    case kind::pure:
    case kind::special:
    case kind::address_space: return true;
    case kind::load: return i.sources[0].what == operand::kind::formal;
    default: return false;
  }
}

void add_results(register_set& to, const std::vector<instruction>& code, const basic_block& b) {
  for (std::uint32_t n = b.first; n < b.last; ++n)
    for (const operand& o : code[n].results)
      if (o.is_register()) to.add(o.index);
}

}  // namespace

idle_ways::idle_ways(const std::vector<instruction>& code, const control_flow& flow,
                     const std::vector<bool>& has_block_value, const lane_region& region)
    : code_(code),
      flow_(flow),
      has_block_value_(has_block_value),
      region_(region),
      only_computes_(flow.blocks().size()),
      is_common_(flow.blocks().size()),
      written_(has_block_value.size()) {
  for (const std::uint32_t block : region.order) {
    const basic_block& b = flow.blocks()[block];
    const instruction& end = code[b.last - 1];
    const bool has_branch = end.kind == kind::branch || ends_region(end);
    only_computes_[block] = std::all_of(code.begin() + b.first, code.begin() + b.last - (has_branch ? 1 : 0), computes);
  }
  find_common();
  for (const std::uint32_t block : region.order)
    if (is_common_[block]) add_results(written_, code_, flow_.blocks()[block]);
}

// Returns whether the block writes only registers, and all threads that reach its end continue in the same block of the
// region.
bool idle_ways::is_common_branch(std::uint32_t block) const {
  const instruction& end = code_[flow_.blocks()[block].last - 1];
  if (!only_computes_[block] || ends_region(end)) return false;
  return !end.guard.is_register() || has_block_value_[end.guard.index];
}

// First assumes that all threads reach all blocks by the same path, and then removes the blocks that some threads may
// reach by another path.
void idle_ways::find_common() {
  for (const std::uint32_t block : region_.order) is_common_[block] = true;
  for (bool changed = true; changed;) {
    changed = false;
    for (const std::uint32_t block : region_.order) {
      if (is_common_[block] && is_common_branch(block)) continue;
      const instruction& end = code_[flow_.blocks()[block].last - 1];
      if (is_meeting(end) && !end.guard.is_register() && !region_.has_passage(end)) continue;
      for (const std::uint32_t to : flow_.blocks()[block].successors) {
        if (region_.position[to] == ~0U || !is_common_[to]) continue;
        is_common_[to] = false;
        changed = true;
      }
    }
  }
}

std::optional<std::uint32_t> idle_ways::only_successor(std::uint32_t block) const {
  const basic_block& b = flow_.blocks()[block];
  if (b.successors.size() != 1 || code_[b.last - 1].guard.is_register()) return std::nullopt;
  return b.successors[0];
}

std::optional<idle_ways::way> idle_ways::behind(std::uint32_t block, std::uint32_t to) const {
  constexpr unsigned most_blocks = 8;
  if (!is_common_[block] || !only_computes_[block]) return std::nullopt;
  way result{{to}, written_};
  for (unsigned n = 0; n < most_blocks; ++n) {
    const std::uint32_t here = result.blocks.back();
    if (!only_computes_[here]) return std::nullopt;
    const basic_block& b = flow_.blocks()[here];
    const instruction& end = code_[b.last - 1];
    if (ends_region(end)) {
      if (end.guard.is_register() || (is_meeting(end) && !is_block_barrier(end))) return std::nullopt;
      add_results(result.written, code_, {b.first, b.last - 1, {}});
      return result;
    }
    add_results(result.written, code_, b);
    const auto next = only_successor(here);
    if (!next) return std::nullopt;
    result.blocks.push_back(*next);
  }
  return std::nullopt;
}

}  // namespace hpe::ptx
