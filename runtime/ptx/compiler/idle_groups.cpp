// Regions in which most threads have nothing to do, such as `if (t < s) { ... } __syncthreads();`. If a group of
// threads has nothing to do because of a comparison, and the compared value increases with the thread index, then all
// later groups have nothing to do either.

#include <algorithm>
#include <cstddef>
#include <limits>

#include "runtime/ptx/arithmetic/scalar.h"
#include "runtime/ptx/compiler/helpers.h"
#include "runtime/ptx/compiler/regions.h"
#include "runtime/ptx/execution/block.h"
#include "runtime/ptx/program/special_register.h"

namespace hpe::ptx {

using llvm::Value;

namespace {

bool is_plain(const instruction& i) {
  return !i.guard.is_register() &&
         std::none_of(i.sources.begin(), i.sources.end(), [](const operand& o) { return o.negated; });
}

}  // namespace

// Returns the difference, modulo 2^32, of a 32-bit register between threads whose indices differ by 1 in x, y or z.
// Empty if the compiler does not know it.
std::optional<region_emitter::per_index> region_emitter::differences_of(emitter& e, const operand& of) const {
  Value* const zero = e.at.getInt32(0);
  if (!of.is_register()) {
    if (of.what != operand::kind::immediate) return std::nullopt;
    return per_index{zero, zero, zero};
  }
  if (has_block_value_[of.index]) return per_index{zero, zero, zero};
  if (repeated_[of.index] == nullptr) return std::nullopt;
  const instruction& i = *repeated_[of.index];
  if (!is_plain(i) || bits_of(i.types[0]) != 32) return std::nullopt;
  if (i.kind == kind::special) {
    Value* const one = e.at.getInt32(1);
    switch (static_cast<special_register>(i.sources[0].value)) {
      case special_register::tid_x: return per_index{one, zero, zero};
      case special_register::tid_y: return per_index{zero, one, zero};
      case special_register::tid_z: return per_index{zero, zero, one};
      default: return std::nullopt;
    }
  }
  if (i.kind != kind::pure || i.has(modifier::hi) || i.has(modifier::wide) || i.has(modifier::sat)) return std::nullopt;
  std::vector<per_index> sources;
  for (const operand& o : i.sources) {
    const auto source = differences_of(e, o);
    if (!source) return std::nullopt;
    sources.push_back(*source);
  }
  const auto each = [](const auto& make) { return per_index{make(0), make(1), make(2)}; };
  const auto is_same = [&](const per_index& of_source) {
    return std::all_of(of_source.begin(), of_source.end(), [&](const Value* v) { return v == zero; });
  };
  const auto product = [&]() -> std::optional<per_index> {
    const bool is_second = is_same(sources[0]);
    if (!is_second && !is_same(sources[1])) return std::nullopt;
    const operand& factor = i.sources[is_second ? 0 : 1];
    if (!lanes_->shape_of(factor).is_uniform()) return std::nullopt;
    return each([&](int n) {
      Value* const one = sources[is_second ? 1 : 0][n];
      return one == zero ? zero : e.at.CreateMul(one, e.get(factor, 32));
    });
  };
  switch (i.op) {
    case opcode::mov: return sources[0];
    case opcode::cvt:
      return is_float(i.types[0]) || bits_of(i.second_type()) != 32 ? std::nullopt : std::optional(sources[0]);
    case opcode::add: return each([&](int n) { return e.at.CreateAdd(sources[0][n], sources[1][n]); });
    case opcode::sub: return each([&](int n) { return e.at.CreateSub(sources[0][n], sources[1][n]); });
    case opcode::mul: return product();
    case opcode::mad: {
      const auto first = product();
      if (!first) return std::nullopt;
      return each([&](int n) { return e.at.CreateAdd((*first)[n], sources[2][n]); });
    }
    case opcode::shl: {
      const operand& by = i.sources[1];
      if (by.what != operand::kind::immediate || by.value >= 32) return std::nullopt;
      return each([&](int n) { return e.at.CreateShl(sources[0][n], by.value); });
    }
    default: return std::nullopt;
  }
}

// Returns an i64: the largest increase, from one thread to any later thread, of a value with these differences; 2^40 if
// the value decreases between two successive threads.
Value* region_emitter::emit_growth(emitter& e, const per_index& difference) {
  llvm::Type* const i64 = e.at.getInt64Ty();
  Value* growth = e.at.getInt64(0);
  Value* grows = e.at.getTrue();
  const std::size_t counts[] = {offsetof(block_context, ntid.x), offsetof(block_context, ntid.y),
                                offsetof(block_context, ntid.z)};
  for (std::size_t n = 0; n < 3; ++n) {
    Value* const count = e.at.CreateZExt(e.member(counts[n], e.at.getInt32Ty()), i64);
    Value* const step = e.at.CreateSExt(difference[n], i64);
    // The step must be at least the growth along a row (or plane), because the next row (or plane) begins at index 0
    // again.
    Value* const is_higher = e.at.CreateICmpSGE(step, growth);
    grows = e.at.CreateAnd(grows, e.at.CreateOr(is_higher, e.at.CreateICmpEQ(count, e.at.getInt64(1))));
    growth = e.at.CreateAdd(growth, e.at.CreateMul(step, e.at.CreateSub(count, e.at.getInt64(1))));
  }
  return e.at.CreateSelect(grows, growth, e.at.getInt64(std::uint64_t{1} << 40));
}

// Emits a test for groups whose lanes all take the same branch at the end of block `b` (`is_taken`: whether they jump).
// Returns an i1 that is true only if all later groups take the same branch. Null if the compiler cannot test this.
Value* region_emitter::emit_stays_so(emitter& e, const basic_block& b, bool is_taken) {
  const operand& guard = kernel_.code[b.last - 1].guard;
  const instruction* found = nullptr;
  for (std::uint32_t n = b.last - 1; n-- > b.first && found == nullptr;) {
    for (const operand& o : kernel_.code[n].results)
      if (o.is_register() && o.index == guard.index) found = &kernel_.code[n];
    if (found == nullptr) continue;
    for (std::uint32_t later = n + 1; later < b.last; ++later)
      for (const operand& o : kernel_.code[later].results)
        for (const operand& read : found->sources)
          if (o.is_register() && read.is_register() && o.index == read.index) return nullptr;
  }
  if (found == nullptr || found->op != opcode::setp || found->sources.size() != 2 || !is_plain(*found)) return nullptr;
  const type t = found->types[0];
  if (is_float(t) || bits_of(t) != 32) return nullptr;
  auto how = integer_predicate(describe(*found).compare, is_signed(t));
  if (how == llvm::CmpInst::BAD_ICMP_PREDICATE) return nullptr;
  const auto is_common = [&](const operand& o) {
    return o.what == operand::kind::immediate || (o.is_register() && has_block_value_[o.index]);
  };
  const bool is_second = is_common(found->sources[0]);
  const operand &growing = found->sources[is_second ? 1 : 0], &bound = found->sources[is_second ? 0 : 1];
  if (!is_common(bound) || !lanes_->shape_of(bound).is_uniform()) return nullptr;
  const lane_shape::kind shape = lanes_->shape_of(growing).what;
  if (shape != lane_shape::kind::uniform && shape != lane_shape::kind::linear) return nullptr;
  if (is_second) how = llvm::CmpInst::getSwappedPredicate(how);
  if (is_taken == guard.negated) how = llvm::CmpInst::getInversePredicate(how);
  const bool is_above = llvm::ICmpInst::isGE(how) || llvm::ICmpInst::isGT(how);
  if (!is_above && how != llvm::CmpInst::ICMP_NE) return nullptr;
  const auto differences = differences_of(e, growing);
  if (!differences) return nullptr;
  Value* const here = e.get(growing, 32);
  Value* const most = e.at.CreateAdd(e.at.CreateZExt(here, e.at.getInt64Ty()), emit_growth(e, *differences));
  Value* const in_range =
      e.at.CreateICmpULE(most, e.at.getInt64(std::uint64_t{std::numeric_limits<std::int32_t>::max()}));
  return is_above ? in_range : e.at.CreateAnd(in_range, e.at.CreateICmpUGT(here, e.get(bound, 32)));
}

// Emits code for groups whose lanes all continue from `block` in `to`. If this group and all later groups only leave
// the region by this path, the emitted code completes the region for all of them at once. Otherwise the code that is
// emitted next runs.
void region_emitter::emit_idle_rest(emitter& e, std::uint32_t block, std::uint32_t to, bool is_taken) {
  if (!idle_ || to == lane_region::gone || e.mask != nullptr) return;
  const auto way = idle_->behind(block, to);
  if (!way) return;
  const std::uint32_t point = point_after(way->blocks.back());
  std::vector<std::uint32_t> written;
  if (point != block_context::ended) {
    for (const auto& [r, is_shown] : kept_at(point)) {
      if (!way->written.has(r)) continue;  // the region does not write the register, so its slot keeps the value
      if (is_shown || !has_block_value_[r] || !lanes_->shape_of(r).is_uniform()) return;
      written.push_back(r);
    }
  }
  Value* const stays_so = emit_stays_so(e, flow_.blocks()[block], is_taken);
  if (stays_so == nullptr) return;
  llvm::LLVMContext& c = e.at.getContext();
  Value* const as_before = e.at.CreateOr(e.at.CreateICmpEQ(loop_.before, e.at.getInt32(helpers::no_outcome)),
                                         e.at.CreateICmpEQ(loop_.before, e.at.getInt32(point)));
  Value* const count = e.at.CreateSub(loop_.last, loop_.thread);
  Value* const is_whole = e.at.CreateICmpEQ(e.at.CreateAnd(count, e.at.getInt32(e.lane_count() - 1)), e.at.getInt32(0));
  llvm::BasicBlock* const idle = llvm::BasicBlock::Create(c, "idle", e.function());
  llvm::BasicBlock* const rest = llvm::BasicBlock::Create(c, "", e.function());
  e.at.CreateCondBr(e.at.CreateAnd(e.at.CreateAnd(stays_so, as_before), is_whole), idle, rest);

  e.at.SetInsertPoint(idle);
  for (const std::uint32_t each : way->blocks) {
    const basic_block& b = flow_.blocks()[each];
    for (std::uint32_t n = b.first; n < b.last; ++n)
      if (!kernel_.code[n].results.empty()) e.emit(kernel_.code[n]);
  }
  std::vector<std::pair<std::uint32_t, Value*>> kept;
  for (const std::uint32_t r : written) kept.emplace_back(r, e.in_all_lanes(r, true));
  llvm::BasicBlock* leave = idle;
  if (!kept.empty()) {
    leave = llvm::BasicBlock::Create(c, "idle_group", e.function());
    e.at.CreateBr(leave);
    e.at.SetInsertPoint(leave);
    llvm::PHINode* const thread = e.at.CreatePHI(e.at.getInt32Ty(), 2);
    thread->addIncoming(loop_.thread, idle);
    e.thread = thread;
    for (const auto& [r, values] : kept) e.own(e.at.CreateAlignedStore(values, frame_place(e, r), llvm::Align(8)));
    e.thread = loop_.thread;
    Value* const next = e.at.CreateAdd(thread, e.at.getInt32(e.lane_count()));
    thread->addIncoming(next, leave);
    e.at.CreateCondBr(e.at.CreateICmpULT(next, loop_.last), leave, loop_.done);
  } else {
    e.at.CreateBr(loop_.done);
  }
  loop_.outcome->addIncoming(e.at.getInt32(point), leave);
  e.at.SetInsertPoint(rest);
}

}  // namespace hpe::ptx
