// Emits shuffles, votes and other meetings of a warp as vector instructions, for lanes that have all arrived. The
// results are those of meet() in warp.cpp.

#include <llvm/IR/IntrinsicsX86.h>

#include "runtime/ptx/compiler/emitter.h"

namespace hpe::ptx {

using llvm::Value;

Value* emitter::is_of_all_lanes(const instruction& i) {
  Value* const run = mask == nullptr ? at.getTrue() : all(mask);
  if (i.sources.empty()) return run;
  const operand& named = i.sources.back();
  const auto is_full = [&](view v) {
    const in_view here(*this, v);
    Value* const lanes_named = get(named, 32);
    return at.CreateICmpEQ(lanes_named, llvm::Constant::getAllOnesValue(lanes_named->getType()));
  };
  return at.CreateAnd(run, lanes->shape_of(named).is_uniform() ? is_full(view::first) : all(is_full(view::every)));
}

emitter::members_of_meeting emitter::find_members(const instruction& i, Value* alive) {
  Value* const run = lane_bits(mask);
  if (i.sources.empty()) return {at.CreateICmpEQ(run, alive), run};
  const operand& named = i.sources.back();
  if (lanes->shape_of(named).is_uniform()) {
    const in_view first(*this, view::first);
    return {at.CreateICmpEQ(at.CreateAnd(get(named, 32), alive), run), run};
  }
  const in_view every(*this, view::every);
  Value* const names = get(named, 32);
  Value* const members = at.CreateAnd(names, splat(alive));
  Value* const lane = steps(at.getInt32Ty(), 1);
  Value* const first_member = at.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, members, at.getFalse());
  // Each lane must belong to the set of lanes that its mask names, and must name the same set as the first lane of this
  // set. If the sets are disjoint, their sizes add up to the number of running lanes.
  Value* const has_itself = is_member(members, lane);
  Value* const all_run = at.CreateICmpEQ(at.CreateAnd(members, splat(at.CreateNot(run))), number(32, 0));
  Value* const as_first = at.CreateICmpEQ(permuted(names, at.CreateAnd(first_member, number(32, 31))), names);
  Value* const fits = lane_bits(at.CreateAnd(at.CreateAnd(has_itself, all_run), as_first));
  Value* is_first = at.CreateICmpEQ(first_member, lane);
  if (mask != nullptr) is_first = at.CreateAnd(is_first, mask);
  Value* const sizes =
      at.CreateSelect(is_first, at.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, members), number(32, 0));
  Value* const is_disjoint =
      at.CreateICmpEQ(at.CreateAddReduce(sizes), at.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, run));
  return {at.CreateAnd(at.CreateICmpEQ(at.CreateAnd(fits, run), run), is_disjoint), members};
}

// Returns, for each lane, whether the set `members` contains lane `lane`, which is below 32.
Value* emitter::is_member(Value* members, Value* lane) { return at.CreateTrunc(at.CreateLShr(members, lane), ints(1)); }

// Emits code that runs once for each meeting, with the meeting's lanes as the mask. If all running lanes have one
// meeting, does not change the mask.
void emitter::for_each_meeting(Value* members, const std::function<void(Value* group)>& body) {
  if (!members->getType()->isVectorTy()) return body(members);
  Value* const run = mask;
  llvm::BasicBlock* const before = at.GetInsertBlock();
  llvm::BasicBlock* const loop = llvm::BasicBlock::Create(at.getContext(), "", function_);
  llvm::BasicBlock* const rest = llvm::BasicBlock::Create(at.getContext(), "", function_);
  Value* const running = lane_bits(run);
  at.CreateBr(loop);
  at.SetInsertPoint(loop);
  llvm::PHINode* const left = at.CreatePHI(at.getInt32Ty(), 2);
  left->addIncoming(running, before);
  Value* const group =
      at.CreateExtractElement(members, at.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, left, at.getTrue()));
  mask = at.CreateBitCast(group, llvm::FixedVectorType::get(at.getInt1Ty(), lane_count()));
  body(group);
  mask = run;
  Value* const others = at.CreateAnd(left, at.CreateNot(group));
  left->addIncoming(others, at.GetInsertBlock());
  at.CreateCondBr(at.CreateICmpNE(others, at.getInt32(0)), loop, rest);
  at.SetInsertPoint(rest);
}

// Sets a register to one value in all lanes.
void emitter::set_common(const operand& o, Value* value) {
  if (!o.is_register()) return;
  if (!shape_of(o.index).is_uniform()) return set_every(o, splat(at.CreateZExt(value, at.getInt64Ty())));
  const in_view first(*this, view::first);
  set(o, value);
}

void emitter::emit_meeting(const instruction& i, Value* members) {
  switch (i.op) {
    case opcode::shfl: return emit_shuffle(i, members);
    case opcode::vote: return emit_vote(i, members);
    case opcode::match: return emit_match(i, members);
    case opcode::redux: return emit_reduction(i, members);
    case opcode::activemask: return set_common(i.results[0], members);
    case opcode::elect: {
      const in_view every(*this, view::every);
      Value* const leader = at.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, in_each_lane(members), at.getFalse());
      set(i.results[0], leader);
      if (i.results.size() > 1) set(i.results[1], at.CreateICmpEQ(steps(at.getInt32Ty(), 1), leader));
      return;
    }
    default: return;  // bar.warp and converge: nothing to do, because all lanes have arrived
  }
}

// Returns a vector whose element n is values[from[n]]. All indices are below 32.
Value* emitter::permuted(Value* values, Value* from) {
  if (auto* const constant = llvm::dyn_cast<llvm::Constant>(from)) {
    std::vector<int> places;
    for (unsigned n = 0; n < lane_count(); ++n)
      places.push_back(
          static_cast<int>(llvm::cast<llvm::ConstantInt>(constant->getAggregateElement(n))->getZExtValue()));
    return at.CreateShuffleVector(values, places);
  }
  const auto half = [&](Value* of, int first) {
    std::vector<int> places;
    for (int n = 0; n < 16; ++n) places.push_back(first + n);
    return at.CreateShuffleVector(of, places);
  };
  Value *const low = half(values, 0), *const high = half(values, 16);
  const auto chosen = [&](int first) {
    return at.CreateIntrinsic(llvm::Intrinsic::x86_avx512_vpermi2var_d_512, {}, {low, half(from, first), high});
  };
  std::vector<int> both;
  for (int n = 0; n < 32; ++n) both.push_back(n);
  return at.CreateShuffleVector(chosen(0), chosen(16), both);
}

// Computes find_source of warp.cpp in all lanes. If the operands are constants, LLVM computes the source lanes at
// compile time. A lane whose source is not in its meeting gets its own value.
void emitter::emit_shuffle(const instruction& i, Value* members) {
  const in_view every(*this, view::every);
  Value* const values = get(i.sources[0], 32);
  Value* const by = at.CreateAnd(get(i.sources[1], 32), number(32, 31));
  Value* const c = get(i.sources[2], 32);
  Value* const clamp = at.CreateAnd(c, number(32, 31));
  Value* const segment = at.CreateAnd(at.CreateLShr(c, number(32, 8)), number(32, 31));
  Value* const lane = steps(at.getInt32Ty(), 1);
  Value* const outside = at.CreateNot(segment);
  Value* const highest = at.CreateOr(at.CreateAnd(lane, segment), at.CreateAnd(clamp, outside));
  Value *from = nullptr, *inside = nullptr;
  if (i.has(modifier::up)) {
    from = at.CreateSub(lane, by);
    inside = at.CreateICmpSGE(from, highest);
  } else {
    if (i.has(modifier::down)) from = at.CreateAdd(lane, by);
    if (i.has(modifier::bfly)) from = at.CreateXor(lane, by);
    if (i.has(modifier::idx)) from = at.CreateOr(at.CreateAnd(lane, segment), at.CreateAnd(by, outside));
    inside = at.CreateICmpULE(from, highest);
  }
  Value* const place = at.CreateAnd(from, number(32, 31));
  Value* const reads = at.CreateAnd(inside, is_member(in_each_lane(members), place));
  set(i.results[0], permuted(values, at.CreateSelect(reads, place, lane)));
  if (i.results.size() > 1) set(i.results[1], inside);
}

void emitter::emit_vote(const instruction& i, Value* members) {
  for_each_meeting(members, [&](Value* group) {
    Value* holding = nullptr;
    {
      const in_view every(*this, view::every);
      holding = at.CreateAnd(lane_bits(get(i.sources[0], 1)), group);
    }
    Value* const everywhere = at.CreateICmpEQ(holding, group);
    Value* const nowhere = at.CreateICmpEQ(holding, at.getInt32(0));
    Value* result = holding;
    if (i.has(modifier::all)) result = everywhere;
    if (i.has(modifier::any)) result = at.CreateNot(nowhere);
    if (i.has(modifier::uni)) result = at.CreateOr(everywhere, nowhere);
    set_common(i.results[0], result);
  });
}

void emitter::emit_match(const instruction& i, Value* members) {
  const auto lanes_like = [&](Value* values, Value* lane) {
    return lane_bits(at.CreateICmpEQ(values, splat(at.CreateExtractElement(values, lane))));
  };
  const auto first_of = [&](Value* set) { return at.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, set, at.getTrue()); };
  Value* values = nullptr;
  {
    const in_view every(*this, view::every);
    values = get(i.sources[0], bits_of(i.types[0]));
  }
  if (i.has(modifier::all)) {
    return for_each_meeting(members, [&](Value* group) {
      Value* const equal = at.CreateICmpEQ(at.CreateAnd(lanes_like(values, first_of(group)), group), group);
      set_common(i.results[0], at.CreateSelect(equal, group, at.getInt32(0)));
      if (i.results.size() > 1) set_common(i.results[1], equal);
    });
  }
  // The loop runs once for each different value.
  llvm::BasicBlock* const before = at.GetInsertBlock();
  llvm::BasicBlock* const loop = llvm::BasicBlock::Create(at.getContext(), "", function_);
  llvm::BasicBlock* const rest = llvm::BasicBlock::Create(at.getContext(), "", function_);
  Value* const running = lane_bits(mask);
  at.CreateBr(loop);
  at.SetInsertPoint(loop);
  llvm::PHINode* const left = at.CreatePHI(at.getInt32Ty(), 2);
  llvm::PHINode* const found = at.CreatePHI(llvm::FixedVectorType::get(at.getInt32Ty(), lane_count()), 2);
  left->addIncoming(running, before);
  found->addIncoming(llvm::Constant::getNullValue(found->getType()), before);
  Value* const equal = lanes_like(values, first_of(left));
  Value* const lanes_equal = at.CreateBitCast(equal, llvm::FixedVectorType::get(at.getInt1Ty(), lane_count()));
  Value* const result = at.CreateSelect(lanes_equal, splat(equal), found);
  Value* const others = at.CreateAnd(left, at.CreateNot(equal));
  left->addIncoming(others, loop);
  found->addIncoming(result, loop);
  at.CreateCondBr(at.CreateICmpNE(others, at.getInt32(0)), loop, rest);
  at.SetInsertPoint(rest);
  const in_view every(*this, view::every);
  set(i.results[0], at.CreateAnd(result, in_each_lane(members)));
}

void emitter::emit_reduction(const instruction& i, Value* members) {
  Value* values = nullptr;
  {
    const in_view every(*this, view::every);
    values = get(i.sources[0], 32);
  }
  const bool s = i.types[0] == type::s32;
  std::uint32_t neutral = 0;
  std::function<Value*(Value*)> reduced = [&](Value* v) { return at.CreateXorReduce(v); };
  if (i.has(modifier::op_add)) {
    reduced = [&](Value* v) { return at.CreateAddReduce(v); };
  } else if (i.has(modifier::op_min)) {
    neutral = s ? 0x7fffffff : ~0U;
    reduced = [&](Value* v) { return at.CreateIntMinReduce(v, s); };
  } else if (i.has(modifier::op_max)) {
    neutral = s ? 0x80000000 : 0;
    reduced = [&](Value* v) { return at.CreateIntMaxReduce(v, s); };
  } else if (i.has(modifier::op_and)) {
    neutral = ~0U;
    reduced = [&](Value* v) { return at.CreateAndReduce(v); };
  } else if (i.has(modifier::op_or)) {
    reduced = [&](Value* v) { return at.CreateOrReduce(v); };
  }
  for_each_meeting(members, [&](Value*) {
    const in_view every(*this, view::every);
    Value* const of_members = mask == nullptr ? values : at.CreateSelect(mask, values, number(32, neutral));
    set_common(i.results[0], reduced(of_members));
  });
}

}  // namespace hpe::ptx
