// Meetings of the lanes of a warp (PTX ISA, section 9.7.13). Lanes may wait at different instructions with the same
// opcode, so each lane uses the operands of its own instruction.

#include <array>
#include <bit>

#include "runtime/ptx/execution/scheduler.h"
#include "runtime/ptx/races/race_finder.h"

namespace hpe::ptx {

namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

struct meeting {
  block_context& block;
  const execution_engine& points;
  u32 first;
  u32 lanes;

  [[nodiscard]] bool has(u32 lane) const { return (lanes >> lane & 1) != 0; }
  [[nodiscard]] const instruction& what(u32 lane) const { return points.at(block.next[first + lane]); }
  [[nodiscard]] u64 source(u32 lane, std::size_t n) const {
    return value_of(block, first + lane, what(lane).sources[n]);
  }
  // The lanes of the meeting that a lane's mask names. In lockstep, these may be fewer than all lanes of the meeting.
  [[nodiscard]] u32 named_by(u32 lane) const {
    return lanes & static_cast<u32>(value_of(block, first + lane, what(lane).sources.back()));
  }
  void result(u32 lane, std::size_t n, u64 value) const {
    if (n < what(lane).results.size()) set_result(block, first + lane, what(lane).results[n], value);
  }
};

// The lane from which a lane reads in a shuffle (PTX ISA, shfl). Bits 0 to 4 of operand c are the clamp, bits 8 to 12
// the segment mask.
struct shuffle_source {
  u32 lane;
  bool inside;
};

inline shuffle_source find_source(modifier how, u32 lane, u32 b, u32 c) {
  b &= 31;
  const u32 clamp = c & 31, segment = c >> 8 & 31;
  const u32 highest = (lane & segment) | (clamp & ~segment);
  u32 from = 0;
  bool inside = false;
  switch (how) {
    case modifier::up:
      from = lane - b;
      inside = static_cast<std::int32_t>(from) >= static_cast<std::int32_t>(highest);
      break;
    case modifier::down:
      from = lane + b;
      inside = from <= highest;
      break;
    case modifier::bfly:
      from = lane ^ b;
      inside = from <= highest;
      break;
    default:
      from = (lane & segment) | (b & ~segment);
      inside = from <= highest;
      break;
  }
  return {inside ? from : lane, inside};
}

modifier mode_of(const instruction& what) {
  return what.modifiers.one_of(modifier::up, modifier::down, modifier::bfly, modifier::idx);
}

void shuffle(const meeting& m) {
  std::array<u64, warp_size> values{};
  for (u32 lane = 0; lane < warp_size; ++lane)
    if (m.has(lane)) values[lane] = m.source(lane, 0);
  for (u32 lane = 0; lane < warp_size; ++lane) {
    if (!m.has(lane)) continue;
    const auto [from, inside] = find_source(mode_of(m.what(lane)), lane, static_cast<u32>(m.source(lane, 1)),
                                            static_cast<u32>(m.source(lane, 2)));
    // PTX does not define the result of a read from a lane outside of the meeting. In hpe, the result is the reading
    // lane's own value.
    m.result(lane, 0, m.has(from) ? values[from] : values[lane]);
    m.result(lane, 1, inside ? 1 : 0);
  }
}

// Executes a shuffle in the usual case, in which all lanes wait at the same instruction.
void shuffle_together(block_context& block, const instruction& what, u32 first) {
  std::array<u64, warp_size> values;
  const modifier how = mode_of(what);
  const operand none;
  const operand &d = what.results[0], &p = what.results.size() > 1 ? what.results[1] : none;
  const auto value = [&](u32 lane, const operand& o) {
    return o.is_register() ? block.register_of(first + lane, o.index) : o.value;
  };
  for (u32 lane = 0; lane < warp_size; ++lane) values[lane] = value(lane, what.sources[0]);
  for (u32 lane = 0; lane < warp_size; ++lane) {
    const auto [from, inside] = find_source(how, lane, static_cast<u32>(value(lane, what.sources[1])),
                                            static_cast<u32>(value(lane, what.sources[2])));
    if (d.is_register()) block.register_of(first + lane, d.index) = values[from];
    if (p.is_register()) block.register_of(first + lane, p.index) = inside ? 1 : 0;
  }
}

// Executes vote. Like GPUs, a vote counts only lanes that the voting lane's mask names.
void vote(const meeting& m) {
  u32 holding = 0;
  for (u32 lane = 0; lane < warp_size; ++lane)
    if (m.has(lane) && m.source(lane, 0) != 0) holding |= 1U << lane;
  for (u32 lane = 0; lane < warp_size; ++lane) {
    if (!m.has(lane)) continue;
    const instruction& what = m.what(lane);
    const u32 named = m.named_by(lane), agreeing = holding & named;
    u64 value = agreeing;
    if (what.has(modifier::all)) value = agreeing == named ? 1 : 0;
    if (what.has(modifier::any)) value = agreeing != 0 ? 1 : 0;
    if (what.has(modifier::uni)) value = agreeing == named || agreeing == 0 ? 1 : 0;
    m.result(lane, 0, value);
  }
}

// Executes match, which compares only lanes that the matching lane's mask names.
void match(const meeting& m) {
  std::array<u64, warp_size> values{};
  for (u32 lane = 0; lane < warp_size; ++lane)
    if (m.has(lane)) values[lane] = m.source(lane, 0);
  for (u32 lane = 0; lane < warp_size; ++lane) {
    if (!m.has(lane)) continue;
    const u32 named = m.named_by(lane);
    u32 equal = 0;
    for (u32 other = 0; other < warp_size; ++other)
      if ((named >> other & 1) != 0 && values[other] == values[lane]) equal |= 1U << other;
    const bool all = m.what(lane).has(modifier::all);
    m.result(lane, 0, all && equal != named ? 0 : equal);
    m.result(lane, 1, equal == named ? 1 : 0);
  }
}

u32 combined(const instruction& what, u32 a, u32 b) {
  const bool s = what.types[0] == type::s32;
  const bool less = s ? static_cast<std::int32_t>(a) < static_cast<std::int32_t>(b) : a < b;
  if (what.has(modifier::op_add)) return a + b;
  if (what.has(modifier::op_min)) return less ? a : b;
  if (what.has(modifier::op_max)) return less ? b : a;
  if (what.has(modifier::op_and)) return a & b;
  if (what.has(modifier::op_or)) return a | b;
  return a ^ b;
}

// Executes redux. Reads the operands of all lanes before it writes results, because a register may be both operand and
// result.
void reduce(const meeting& m) {
  const auto leader = static_cast<u32>(std::countr_zero(m.lanes));
  auto total = static_cast<u32>(m.source(leader, 0));
  for (u32 lane = leader + 1; lane < warp_size; ++lane)
    if (m.has(lane)) total = combined(m.what(lane), total, static_cast<u32>(m.source(lane, 0)));
  for (u32 lane = 0; lane < warp_size; ++lane)
    if (m.has(lane)) m.result(lane, 0, total);
}

}  // namespace

std::uint64_t value_of(const block_context& block, std::uint32_t thread, const operand& o) {
  if (!o.is_register()) return o.value;
  const u64 value = block.register_of(thread, o.index);
  return o.negated ? value ^ 1 : value;
}

void set_result(block_context& block, std::uint32_t thread, const operand& o, std::uint64_t value) {
  if (o.is_register()) block.register_of(thread, o.index) = value;
}

void meet_together(block_context& block, const execution_engine& points, const instruction& what, std::uint32_t first) {
  if (what.kind == kind::matrix) {
    meet_matrices(block, what, first);
  } else if (what.op == opcode::shfl) {
    shuffle_together(block, what, first);
  } else if (!what.has(modifier::warp) || block.races != nullptr) {
    meet(block, points, first, ~0U);
  }
}

void meet(block_context& block, const execution_engine& points, std::uint32_t first, std::uint32_t lanes) {
  const meeting m{block, points, first, lanes};
  const auto leader = static_cast<u32>(std::countr_zero(lanes));
  switch (m.what(leader).op) {
    case opcode::shfl: return shuffle(m);
    case opcode::vote: return vote(m);
    case opcode::match: return match(m);
    case opcode::redux: return reduce(m);
    case opcode::activemask:
      for (u32 lane = 0; lane < warp_size; ++lane)
        if (m.has(lane)) m.result(lane, 0, lanes);
      return;
    case opcode::elect:
      for (u32 lane = 0; lane < warp_size; ++lane) {
        if (!m.has(lane)) continue;
        m.result(lane, 0, leader);
        m.result(lane, 1, lane == leader ? 1 : 0);
      }
      return;
    default:  // bar.warp and converge only synchronize
      if (block.races != nullptr && m.what(leader).op != opcode::converge) block.races->meet_lanes(block, first, lanes);
      return;
  }
}

}  // namespace hpe::ptx
