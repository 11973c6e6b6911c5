// Tests of the value of lane 0 that are conclusive for all lanes. They test whether linear values overflow, whether
// accesses are aligned and their addresses increase by the step of their lane_shape, and whether a condition is the
// same in all lanes.

#include <llvm/IR/Instructions.h>

#include <algorithm>
#include <limits>

#include "runtime/ptx/arithmetic/scalar.h"
#include "runtime/ptx/compiler/emitter.h"
#include "runtime/ptx/execution/thread_memory.h"

namespace hpe::ptx {

using llvm::Value;

// Emits a test of whether the 32-bit values `first` + lane * `step` do not overflow in any lane.
Value* emitter::stays_in_range(Value* first, std::int64_t step, bool is_signed) {
  const std::int64_t span = step * (lane_count() - 1);
  const std::int64_t least = is_signed ? std::numeric_limits<std::int32_t>::min() : 0;
  const std::int64_t most =
      is_signed ? std::numeric_limits<std::int32_t>::max() : std::numeric_limits<std::uint32_t>::max();
  Value* const bound = at.getInt32(static_cast<std::uint32_t>(span > 0 ? most - span : least - span));
  if (span > 0) return is_signed ? at.CreateICmpSLE(first, bound) : at.CreateICmpULE(first, bound);
  return is_signed ? at.CreateICmpSGE(first, bound) : at.CreateICmpUGE(first, bound);
}

// Emits a test of whether the values of a uniform, linear or widened operand are linear.
Value* emitter::is_linear(const operand& o) {
  if (!o.is_register() || shape_of(o.index).what != lane_shape::kind::widened) return at.getTrue();
  return at.CreateLoad(at.getInt1Ty(), linear_slot(o.index));
}

// Emits a test of whether the values that an instruction writes to a widened register are linear.
Value* emitter::has_linear_result(const instruction& i) {
  const in_view first(*this, view::first);
  Value* result = at.getTrue();
  for (const operand& o : i.sources) {
    if (!o.is_register()) continue;
    const lane_shape shape = shape_of(o.index);
    // a linear operand has 32 bits; the instruction widens it to 64
    const bool is_narrow = shape.what == lane_shape::kind::linear;
    const type narrow = i.op == opcode::cvt ? i.second_type() : i.types[0];
    result = at.CreateAnd(result, is_narrow ? stays_in_range(get(o, 32), shape.step, is_signed(narrow)) : is_linear(o));
  }
  if (!i.guard.is_register()) return result;
  return at.CreateSelect(condition(i.guard), result, is_linear(i.results[0]));
}

// Emits a test of whether the address increases from lane to lane by the step in its lane_shape. Returns null if the
// address always does.
Value* emitter::keeps_step(const instruction& i) {
  if (simple_.contains(&i)) return nullptr;
  const operand& address = i.sources[0];
  const lane_shape shape = lanes->shape_of(address);
  const bool is_shared = window_of(i) == address_window::own_shared;
  if (shape.what == lane_shape::kind::linear && !is_shared) return nullptr;
  Value* const linear = is_linear(address);
  if (!is_shared) return linear;
  const in_view first(*this, view::first);
  return at.CreateAnd(linear, stays_in_range(narrow_shared_offset_of(address), shape.step, true));
}

// Returns whether a test of lane 0's address can show that the access of all lanes is aligned and contiguous or
// uniform.
bool emitter::is_simple_if_full(const instruction& i) const {
  const lane_shape shape = lanes->shape_of(i.sources[0]);
  if (i.kind == kind::load && shape.is_uniform()) return true;
  return (i.kind == kind::load || i.kind == kind::store) && shape.has_step() &&
         shape.step % static_cast<std::int64_t>(alignment_of(i)) == 0;
}

// Emits a test of whether all accesses are aligned and their addresses increase from lane to lane by the step of their
// shape.
Value* emitter::are_simple(std::span<const instruction* const> accesses) {
  Value* result = at.getTrue();
  Value* wrong = at.getInt64(0);
  for (const instruction* const i : accesses) {
    wrong = at.CreateOr(wrong, at.CreateAnd(offset_of(*i, view::first), alignment_of(*i) - 1));
    if (lanes->shape_of(i->sources[0]).is_uniform()) continue;
    if (Value* const has_step = keeps_step(*i)) result = at.CreateAnd(result, has_step);
  }
  return at.CreateAnd(result, at.CreateICmpEQ(wrong, at.getInt64(0)));
}

emitter::certainty emitter::certainty_of(const operand& condition, std::span<const instruction> before) {
  constexpr std::size_t most = 8;  // limits the number of instructions to examine for one condition
  std::size_t left = most;
  return certainty_at(condition, before, before.size(), left);
}

namespace {

bool writes(const instruction& i, std::uint32_t r) {
  return std::any_of(i.results.begin(), i.results.end(),
                     [r](const operand& o) { return o.is_register() && o.index == r; });
}

bool writes_any_source(std::span<const instruction> code, const instruction& of) {
  return std::any_of(of.sources.begin(), of.sources.end(), [&](const operand& o) {
    return o.is_register() &&
           std::any_of(code.begin(), code.end(), [&](const instruction& i) { return writes(i, o.index); });
  });
}

}  // namespace

// Emits a test of a condition as it is before code[end]. Returns an inconclusive result if code from `end` on writes a
// register that the test would read.
emitter::certainty emitter::certainty_at(const operand& condition, std::span<const instruction> code, std::size_t end,
                                         std::size_t& left) {
  const certainty nothing{at.getFalse(), at.getFalse()};
  const in_view first(*this, view::first);
  const auto known = [&]() -> certainty {
    if (!condition.is_register() || shape_of(condition.index).is_uniform()) {
      Value* const holds = get({condition.what, false, condition.index, condition.value}, 1);
      return {holds, at.CreateNot(holds)};
    }
    while (end > 0 && !writes(code[end - 1], condition.index)) --end;
    if (end == 0 || left == 0) return nothing;
    --left;
    const instruction& i = code[--end];
    if (i.guard.is_register() || i.kind != kind::pure) return nothing;
    if (i.op == opcode::setp) return writes_any_source(code.subspan(end), i) ? nothing : certainty_of_comparison(i);
    const bool is_or = i.op == opcode::or_;
    if (!is_or && i.op != opcode::and_ && i.op != opcode::not_ && i.op != opcode::mov) return nothing;
    for (const operand& o : i.sources)
      if (o.is_register() && shape_of(o.index).is_uniform() && writes_any_source(code.subspan(end), i)) return nothing;
    const certainty a = certainty_at(i.sources[0], code, end, left);
    if (i.op == opcode::mov) return a;
    if (i.op == opcode::not_) return {a.none, a.all};
    const certainty b = certainty_at(i.sources[1], code, end, left);
    return is_or ? certainty{at.CreateOr(a.all, b.all), at.CreateAnd(a.none, b.none)}
                 : certainty{at.CreateAnd(a.all, b.all), at.CreateOr(a.none, b.none)};
  }();
  return condition.negated ? certainty{known.none, known.all} : known;
}

// Emits a test of a comparison of a linear value with a uniform value.
emitter::certainty emitter::certainty_of_comparison(const instruction& i) {
  const certainty nothing{at.getFalse(), at.getFalse()};
  const type t = i.types[0];
  if (is_float(t) || bits_of(t) != 32 || i.sources.size() != 2) return nothing;
  if (i.sources[0].negated || i.sources[1].negated) return nothing;
  auto how = integer_predicate(describe(i).compare, is_signed(t));
  if (how == llvm::CmpInst::BAD_ICMP_PREDICATE) return nothing;
  const bool is_second = lanes->shape_of(i.sources[0]).is_uniform();
  const operand& linear = i.sources[is_second ? 1 : 0];
  const lane_shape shape = lanes->shape_of(linear);
  if (shape.what != lane_shape::kind::linear || !lanes->shape_of(i.sources[is_second ? 0 : 1]).is_uniform())
    return nothing;
  if (is_second) how = llvm::CmpInst::getSwappedPredicate(how);
  const std::int64_t span = shape.step * (lane_count() - 1);
  Value* const low = get(linear, 32);
  Value* const high = at.CreateAdd(low, at.getInt32(static_cast<std::uint32_t>(span)));
  Value* const other = get(i.sources[is_second ? 0 : 1], 32);
  Value *const least = span > 0 ? low : high, *const most = span > 0 ? high : low;
  if (llvm::CmpInst::isEquality(how)) {
    Value* const outside = at.CreateICmpUGT(at.CreateSub(other, least), at.CreateSub(most, least));
    return how == llvm::CmpInst::ICMP_EQ ? certainty{at.getFalse(), outside} : certainty{outside, at.getFalse()};
  }
  Value* const in_range = stays_in_range(low, shape.step, is_signed(t));
  const bool holds_below = llvm::ICmpInst::isLE(how) || llvm::ICmpInst::isLT(how);
  Value* const hardest = at.CreateICmp(how, holds_below ? most : least, other);
  Value* const easiest = at.CreateICmp(how, holds_below ? least : most, other);
  return {at.CreateAnd(in_range, hardest), at.CreateAnd(in_range, at.CreateNot(easiest))};
}

}  // namespace hpe::ptx
