// Code that runs several threads at once, in lanes (lanes.h).
//
// The emitter has a view: the emitted code computes the value of lane 0, of one lane in a loop over the running lanes,
// or of every lane. For a uniform or linear register, the code stores only the value of lane 0; for a varying register,
// the values of all lanes. For a widened register, the code stores the value of lane 0, the values of all lanes, and a
// flag that is true if these values are linear.

#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/MDBuilder.h>

#include <cstddef>
#include <numeric>

#include "runtime/ptx/compiler/emitter.h"
#include "runtime/ptx/compiler/helpers.h"
#include "runtime/ptx/execution/block.h"
#include "runtime/ptx/execution/thread_memory.h"

namespace hpe::ptx {

using llvm::Value;

llvm::Constant* emitter::steps(llvm::Type* element, std::int64_t step) {
  std::vector<llvm::Constant*> values;
  for (unsigned k = 0; k < lane_count(); ++k)
    values.push_back(llvm::ConstantInt::get(element, static_cast<std::uint64_t>(step * k)));
  return llvm::ConstantVector::get(values);
}

std::vector<emitter::view> emitter::views_of(lane_shape::kind what) {
  if (what == lane_shape::kind::varying) return {view::every};
  if (what == lane_shape::kind::widened) return {view::every, view::first};
  return {view::first};
}

Value* emitter::lane_bits(Value* of) {
  if (of == nullptr) return at.getIntN(lane_count(), (std::uint64_t{1} << lane_count()) - 1);
  return at.CreateBitCast(of, at.getIntNTy(lane_count()));
}

Value* emitter::any(Value* of) { return at.CreateICmpNE(lane_bits(of), at.getIntN(lane_count(), 0)); }

Value* emitter::all(Value* of) { return at.CreateICmpEQ(lane_bits(of), lane_bits(nullptr)); }

Value* emitter::lanes_where(const operand& guard) {
  const in_view every(*this, view::every);
  Value* const holds = condition(guard);
  return mask == nullptr ? holds : at.CreateAnd(mask, holds);
}

Value* emitter::in_all_lanes(std::uint32_t r, bool is_raw) {
  const in_view every(*this, view::every);
  Value* const values = is_raw ? get_raw(r) : get({operand::kind::reg, false, r, 0}, bits_of(registers_[r]));
  return at.CreateZExt(values, ints(64));
}

Value* emitter::restore(std::uint32_t r, Value* values) {
  const in_view every(*this, view::every);
  const lane_shape shape = shape_of(r);
  // The code compares whole 64-bit slots, because this needs the fewest instructions.
  Value* const all_equal = all(at.CreateICmpEQ(values, splat(at.CreateExtractElement(values, std::uint64_t{0}))));
  values = at.CreateTrunc(values, of_lanes(type_of(r)));
  if (shape.what == lane_shape::kind::varying) {
    set_raw(r, values);
    return at.getTrue();
  }
  Value* const first = at.CreateExtractElement(values, std::uint64_t{0});
  {
    const in_view lane_0(*this, view::first);
    set_raw(r, first);
  }
  if (shape.is_uniform()) return all_equal;
  Value* const linear = all(at.CreateICmpEQ(values, at.CreateAdd(splat(first), steps(type_of(r), shape.step))));
  if (shape.what == lane_shape::kind::linear) return linear;
  set_raw(r, values);
  at.CreateStore(linear, linear_slot(r));
  return at.getTrue();
}

void emitter::emit_in_lanes(const instruction& i) {
  if (i.kind == kind::pure || i.kind == kind::special || i.kind == kind::address_space) return emit_in_views(i);
  Value* const before = mask;
  llvm::BasicBlock* rest = nullptr;
  if (i.guard.is_register()) {
    const bool is_uniform = shape_of(i.guard.index).is_uniform();
    if (!is_uniform) mask = lanes_where(i.guard);
    llvm::BasicBlock* const guarded = llvm::BasicBlock::Create(at.getContext(), "", function_);
    rest = llvm::BasicBlock::Create(at.getContext(), "", function_);
    at.CreateCondBr(is_uniform ? condition(i.guard) : any(mask), guarded, rest);
    at.SetInsertPoint(guarded);
  }
  switch (i.kind) {
    case kind::load: emit_load_in_lanes(i); break;
    case kind::store: emit_store_in_lanes(i); break;
    case kind::atomic: emit_atomic_in_lanes(i); break;
    case kind::fence: emit_fence(i); break;
    default: break;
  }
  mask = before;
  if (rest != nullptr) {
    at.CreateBr(rest);
    at.SetInsertPoint(rest);
  }
}

void emitter::emit_in_views(const instruction& i) {
  const auto emit_once = [&](view v) {
    const in_view here(*this, v);
    switch (i.kind) {
      case kind::special: emit_special(i); break;
      case kind::address_space: emit_address_space(i); break;
      default: emit_pure(i); break;
    }
  };
  const operand& result = i.results[0];
  const lane_shape::kind what = result.is_register() ? shape_of(result.index).what : lane_shape::kind::uniform;
  if (what == lane_shape::kind::widened) at.CreateStore(has_linear_result(i), linear_slot(result.index));
  for (const view v : views_of(what)) emit_once(v);
}

// Inline operations of lanes that all run are emitted without a loop.
void emitter::emit_atomic_in_lanes(const instruction& i) {
  check_alignment_in_lanes(i);
  const auto of_lane = [&] {
    const bool is_new = checked_.insert(&i).second;
    emit_atomic(i);
    if (is_new) checked_.erase(&i);
  };
  if (!is_inline_atomic(i) || (is_float(i.types[0]) && !is_shared_access(i))) return for_each_lane(i, of_lane);
  Value* const some = mask;
  if (some == nullptr) return for_all_lanes(i, of_lane);
  llvm::BasicBlock* const whole = llvm::BasicBlock::Create(at.getContext(), "", function_);
  llvm::BasicBlock* const part = llvm::BasicBlock::Create(at.getContext(), "", function_);
  llvm::BasicBlock* const rest = llvm::BasicBlock::Create(at.getContext(), "", function_);
  at.CreateCondBr(all(some), whole, part);
  at.SetInsertPoint(whole);
  mask = nullptr;
  for_all_lanes(i, of_lane);
  at.CreateBr(rest);
  at.SetInsertPoint(part);
  mask = some;
  for_each_lane(i, of_lane);
  at.CreateBr(rest);
  at.SetInsertPoint(rest);
}

// Returns memory number `n` for one value of each lane. Code that takes the values of single lanes out of a vector
// passes them through this memory with volatile accesses, which LLVM does not replace by vector instructions. One store
// of the vector and one load for each lane take fewer instructions than moves between vector and scalar registers. And
// the addresses of all lanes are known at about the same time: if the address of a store is known later than the
// address of a load after the store, the CPU executes the load first, and must repeat the code after the load if both
// addresses are equal.
llvm::AllocaInst* emitter::lane_memory(llvm::Type* of_lane, std::size_t n) {
  llvm::AllocaInst*& result = lane_memory_[{of_lane, n}];
  if (result == nullptr) result = allocate(llvm::FixedVectorType::get(of_lane, lane_count()), 64);
  return result;
}

std::function<Value*(unsigned)> emitter::values_of_lanes(Value* values, std::size_t n) {
  llvm::Type* const of_lane = llvm::cast<llvm::FixedVectorType>(values->getType())->getElementType();
  llvm::AllocaInst* const memory = lane_memory(of_lane, n);
  own(at.CreateStore(values, memory, true));
  return [=, this](unsigned lane) {
    return own(at.CreateLoad(of_lane, at.CreateConstGEP1_64(of_lane, memory, lane), true));
  };
}

// Like values_of_lanes for the pointers of an access. If the pointers are a scalar plus constants, the code for a lane
// adds the constant. If all lanes run, the code for a lane computes the pointer from
// the address register, because an offset in shared memory has half the size of a pointer.
std::function<Value*(unsigned)> emitter::pointers_of_lanes(const instruction& i, Value* pointers) {
  const operand& o = i.sources[0];
  const auto* const sum = llvm::dyn_cast_or_null<llvm::GetElementPtrInst>(pointers);
  if (sum != nullptr && !sum->getPointerOperandType()->isVectorTy() && llvm::isa<llvm::Constant>(sum->getOperand(1)))
    return [=, this](unsigned lane) { return at.CreateExtractElement(pointers, lane); };
  // The place of a record takes several instructions, which are faster for all lanes at once.
  if (mask != nullptr || is_record(i) || shape_of(o.index).what != lane_shape::kind::varying)
    return values_of_lanes(pointers, 0);
  llvm::AllocaInst* const memory = lane_memory(type_of(o.index), 0);
  {
    const in_view every(*this, view::every);
    own(at.CreateStore(get_raw(o.index), memory, true));
  }
  return [=, this, &o, &i](unsigned lane) {
    const in_view one(*this, view::one);
    lane_ = at.getInt32(lane);
    copies_[o.index] = memory;
    Value* const pointer = pointer_of(i, o);
    copies_.clear();
    return pointer;
  };
}

// Stores the registers that an instruction reads in lane memory, where get_raw() finds the value of one lane.
void emitter::copy_reads(const instruction& i) {
  const in_view every(*this, view::every);
  for (const operand& o : i.sources) {
    if (!o.is_register() || copies_.contains(o.index) || bits_of(registers_[o.index]) < 8) continue;
    const lane_shape::kind what = shape_of(o.index).what;
    if (what != lane_shape::kind::varying && what != lane_shape::kind::widened) continue;
    llvm::AllocaInst* const memory = lane_memory(type_of(o.index), copies_.size());
    own(at.CreateStore(get_raw(o.index), memory, true));
    copies_[o.index] = memory;
  }
}

// Emits code once for each lane, with the registers and the thread of that lane. All lanes must run. `i` is the
// instruction whose operands the code uses.
void emitter::for_all_lanes(const instruction& i, const std::function<void()>& body) {
  Value* const group = thread;
  copy_reads(i);
  for (unsigned lane = 0; lane < lane_count(); ++lane) {
    const in_view one(*this, view::one);
    lane_ = at.getInt32(lane);
    thread = at.CreateAdd(group, lane_);
    set_member(offsetof(block_context, current), thread);
    body();
  }
  copies_.clear();
  thread = group;
  set_member(offsetof(block_context, current), group);
}

// Like for_all_lanes, but emits a loop over the running lanes.
void emitter::for_each_lane(const instruction& i, const std::function<void()>& body) {
  llvm::LLVMContext& c = at.getContext();
  llvm::Type* const bits = at.getIntNTy(lane_count());
  copy_reads(i);
  llvm::BasicBlock* const before = at.GetInsertBlock();
  Value* const running = lane_bits(mask);
  llvm::BasicBlock* const loop = llvm::BasicBlock::Create(c, "", function_);
  llvm::BasicBlock* const rest = llvm::BasicBlock::Create(c, "", function_);
  at.CreateBr(loop);
  at.SetInsertPoint(loop);
  llvm::PHINode* const left = at.CreatePHI(bits, 2);
  left->addIncoming(running, before);
  Value* const group = thread;
  {
    const in_view one(*this, view::one);
    lane_ = at.CreateZExt(at.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, left, at.getTrue()), at.getInt32Ty());
    thread = at.CreateAdd(group, lane_);
    set_member(offsetof(block_context, current), thread);
    body();
  }
  copies_.clear();
  thread = group;
  set_member(offsetof(block_context, current), group);
  Value* const others = at.CreateAnd(left, at.CreateSub(left, llvm::ConstantInt::get(bits, 1)));
  left->addIncoming(others, at.GetInsertBlock());
  at.CreateCondBr(at.CreateICmpNE(others, llvm::ConstantInt::get(bits, 0)), loop, rest);
  at.SetInsertPoint(rest);
}

Value* emitter::offset_of(const instruction& i, view v) {
  const in_view here(*this, v);
  return window_of(i) == address_window::own_shared ? shared_offset_of(i.sources[0]) : address_of(i.sources[0]);
}

// Returns the low bits of the offset, in the narrowest possible type, which needs the fewest vector registers.
Value* emitter::low_offset_of(const instruction& i, view v) {
  if (window_of(i) != address_window::own_shared || !i.sources[0].is_register()) return offset_of(i, v);
  const in_view here(*this, v);
  const operand& o = i.sources[0];
  return at.CreateAdd(get({operand::kind::reg, false, o.index, 0}, 32),
                      number(32, static_cast<std::uint32_t>(o.value)));
}

Value* emitter::pointers_of(const instruction& i, view v) {
  const in_view here(*this, v);
  return pointer_of(i, i.sources[0]);
}

// Returns the mask, by element, of an access whose lanes have adjacent elements.
Value* emitter::mask_of_elements(unsigned of_each_lane) {
  if (mask == nullptr)
    return llvm::Constant::getAllOnesValue(llvm::FixedVectorType::get(at.getInt1Ty(), lane_count() * of_each_lane));
  if (of_each_lane == 1) return mask;
  std::vector<int> places;
  for (unsigned k = 0; k < lane_count() * of_each_lane; ++k) places.push_back(static_cast<int>(k / of_each_lane));
  return at.CreateShuffleVector(mask, places);
}

void emitter::check_alignment_in_lanes(const instruction& i) {
  const std::uint64_t bytes = alignment_of(i);
  if (bytes <= 1 || simple_.contains(&i)) return;
  // If the step is a multiple of the alignment, a check of lane 0 is enough.
  const lane_shape shape = lanes->shape_of(i.sources[0]);
  const bool is_alike = shape.is_uniform() || (shape.has_step() && shape.step % static_cast<std::int64_t>(bytes) == 0);
  Value* wrong = nullptr;
  if (is_alike) {
    wrong = at.CreateICmpNE(at.CreateAnd(offset_of(i, view::first), bytes - 1), at.getInt64(0));
  } else {
    Value* const low_bits = at.CreateAnd(low_offset_of(i, view::every), bytes - 1);
    Value* const lanes_wrong = at.CreateICmpNE(low_bits, llvm::Constant::getNullValue(low_bits->getType()));
    wrong = any(mask == nullptr ? lanes_wrong : at.CreateAnd(lanes_wrong, mask));
  }
  llvm::LLVMContext& c = at.getContext();
  llvm::BasicBlock* const report = llvm::BasicBlock::Create(c, "", function_);
  llvm::BasicBlock* const rest = llvm::BasicBlock::Create(c, "", function_);
  at.CreateCondBr(wrong, report, rest, llvm::MDBuilder(c).createBranchWeights(1, 1 << 20));
  at.SetInsertPoint(report);
  for_each_lane(i, [&] {
    const std::set<const instruction*> before = std::exchange(checked_, {});
    const instruction* const one = &i;
    check_alignment({&one, 1});
    checked_ = before;
  });
  at.CreateUnreachable();
  at.SetInsertPoint(rest);
}

// Sets a register in the lanes of the mask.
void emitter::set_every(const operand& o, Value* values) {
  if (!o.is_register()) return;
  const in_view every(*this, view::every);
  values = at.CreateTrunc(values, of_lanes(type_of(o.index)));
  if (mask != nullptr) values = at.CreateSelect(mask, values, get_raw(o.index));
  at.CreateStore(values, slot(o.index, view::every));
}

void emitter::emit_load_in_lanes(const instruction& i) {
  const type t = i.types[0];
  const unsigned bytes = bytes_of(t);
  const bool is_safe = is_runtime_memory(i.sources[0]);
  if (!is_safe) check_alignment_in_lanes(i);
  const auto extended = [&](Value* value, llvm::Type* to) {
    return is_signed(t) ? at.CreateSExt(value, to) : at.CreateZExt(value, to);
  };
  llvm::Type* const wide = llvm::FixedVectorType::get(at.getInt64Ty(), lane_count());
  // The lanes outside of the mask need the old value only if they run, but the guard of the load is false, or if lanes
  // wait for code that reads the register.
  const auto set_loaded = [&](const operand& o, Value* values) {
    const bool keeps = i.guard.is_register() || kept == nullptr || !o.is_register() || kept->has(o.index);
    Value* const before = mask;
    if (!keeps) mask = nullptr;
    set_every(o, values);
    mask = before;
  };
  if (lanes->shape_of(i.sources[0]).is_uniform()) {
    const in_view first(*this, view::first);
    Value* const pointer = pointer_of(i, i.sources[0]);
    std::vector<Value*> values;
    for (unsigned n = 0; n < i.vector; ++n) {
      llvm::LoadInst* const load = at.CreateAlignedLoad(
          at.getIntNTy(8 * bytes), at.CreateConstGEP1_64(at.getInt8Ty(), pointer, n * bytes), llvm::Align(bytes));
      if (i.sources[0].what == operand::kind::formal && formals_are_invariant)
        load->setMetadata(llvm::LLVMContext::MD_invariant_load, shared_.invariant);
      values.push_back(extended(is_safe ? load : users(load), at.getInt64Ty()));
    }
    for (unsigned n = 0; n < i.vector; ++n) {
      const operand& o = i.results[n];
      if (!o.is_register()) continue;
      if (shape_of(o.index).what == lane_shape::kind::varying) {
        set_loaded(o, splat(values[n]));
      } else {
        set(o, values[n]);
      }
    }
    return;
  }
  // Sets the result registers to the loaded elements. The elements of one lane are adjacent.
  const auto set_elements = [&](Value* whole) {
    for (unsigned n = 0; n < i.vector; ++n) {
      std::vector<int> places;
      for (unsigned k = 0; k < lane_count(); ++k) places.push_back(static_cast<int>(k * i.vector + n));
      set_loaded(i.results[n], extended(i.vector == 1 ? whole : at.CreateShuffleVector(whole, places), wide));
    }
  };
  llvm::Type* const element = at.getIntNTy(8 * bytes);
  const auto load_contiguous = [&](Value* pointer) {
    llvm::Type* const whole = llvm::FixedVectorType::get(element, lane_count() * i.vector);
    if (mask == nullptr) return set_elements(users(at.CreateAlignedLoad(whole, pointer, llvm::Align(bytes))));
    set_elements(users(at.CreateMaskedLoad(whole, pointer, llvm::Align(bytes), mask_of_elements(i.vector))));
  };
  const auto load_scattered = [&](Value* pointers) {
    if (shared_.has_fast_gathers && bytes >= 4 && i.vector == 1) {
      llvm::Type* const whole = llvm::FixedVectorType::get(element, lane_count());
      return set_elements(users(at.CreateMaskedGather(whole, pointers, llvm::Align(bytes), mask_of_elements(1),
                                                      llvm::Constant::getNullValue(whole))));
    }
    // Lanes that do not run load from the block's context instead, which is always mapped.
    if (mask != nullptr) pointers = at.CreateSelect(mask, pointers, splat(context));
    llvm::Type* const of_lane = llvm::FixedVectorType::get(element, i.vector);
    std::vector<Value*> loaded;
    const auto pointer_of_lane = pointers_of_lanes(i, pointers);
    for (unsigned k = 0; k < lane_count(); ++k)
      loaded.push_back(users(at.CreateAlignedLoad(of_lane, pointer_of_lane(k), llvm::Align(bytes))));
    set_elements(llvm::concatenateVectors(at, loaded));
  };
  const std::function<void()> load_spread = [&] { set_elements(load_with_gaps(i, pointers_of(i, view::first))); };
  access_contiguous_or_scattered(i, load_contiguous,
                                 mask == nullptr && lanes->has_small_gaps(i) ? load_spread : std::function<void()>(),
                                 load_scattered);
}

// Loads all bytes between the first and the last element in vectors, and selects the elements of the lanes. No vector
// begins before the first element or ends after the last one, and a gap is shorter than a page. So if the bytes of a
// gap cause a page fault, the elements do too.
Value* emitter::load_with_gaps(const instruction& i, Value* pointer) {
  const unsigned bytes = bytes_of(i.types[0]);
  const std::int64_t step = lanes->shape_of(i.sources[0]).step / bytes;
  const unsigned most = lane_count() >= 16 ? 64 : 32;  // the size of a vector register, in bytes
  const unsigned count = std::min(lane_count(), most / bytes);
  const unsigned distance = static_cast<unsigned>(std::abs(step)), whole = (count - 1) * distance + 1;
  llvm::Type* const part = llvm::FixedVectorType::get(at.getIntNTy(8 * bytes), count);
  std::vector<Value*> results;
  for (unsigned first = 0; first < lane_count(); first += count) {
    const std::int64_t lowest = step > 0 ? first * step : (first + count - 1) * step;
    std::vector<Value*> parts;
    std::vector<std::vector<int>>
        places;  // by part: the place of each lane's element in the part; -1 if it is elsewhere
    for (unsigned begin = 0, done = 0; done < whole; begin += count) {
      begin = std::min(begin, whole - count);
      Value* const here = at.CreateConstGEP1_64(at.getInt8Ty(), pointer,
                                                static_cast<std::uint64_t>((lowest + begin) * std::int64_t{bytes}));
      parts.push_back(users(at.CreateAlignedLoad(part, here, llvm::Align(bytes))));
      places.emplace_back(count, -1);
      for (unsigned k = 0; k < count; ++k) {
        const unsigned place = (step > 0 ? k : count - 1 - k) * distance;
        if (place >= done && place < begin + count) places.back()[k] = static_cast<int>(place - begin);
      }
      done = begin + count;
    }
    // Joins the parts in pairs. Only the first round moves elements to their lanes.
    while (parts.size() > 1) {
      std::vector<Value*> joined;
      std::vector<std::vector<int>> places_of_joined;
      for (std::size_t n = 0; n + 1 < parts.size(); n += 2) {
        std::vector<int> from(count, -1), here(count, -1);
        for (unsigned k = 0; k < count; ++k) {
          if (places[n][k] >= 0) from[k] = places[n][k];
          if (places[n + 1][k] >= 0) from[k] = places[n + 1][k] + static_cast<int>(count);
          if (from[k] >= 0) here[k] = static_cast<int>(k);
        }
        joined.push_back(at.CreateShuffleVector(parts[n], parts[n + 1], from));
        places_of_joined.push_back(here);
      }
      if (parts.size() % 2 != 0) {
        joined.push_back(parts.back());
        places_of_joined.push_back(places.back());
      }
      parts = std::move(joined);
      places = std::move(places_of_joined);
    }
    results.push_back(parts[0]);
  }
  return llvm::concatenateVectors(at, results);
}

// Emits a test of whether the addresses in the lanes of the mask increase from lane to lane by the size of the access.
// The analysis does not know this, for example if lanes may leave a loop at different times, although they usually do
// not.
Value* emitter::happens_to_be_contiguous(const instruction& i) {
  const in_view every(*this, view::every);
  const operand address{operand::kind::reg, false, i.sources[0].index, 0};
  const bool is_shared = window_of(i) == address_window::own_shared;
  const std::int64_t step = step_of_size(i);
  Value* const values = get(address, is_shared ? 32 : 64);
  Value* const first = at.CreateExtractElement(values, std::uint64_t{0});
  Value* as_expected = at.CreateICmpEQ(values, at.CreateAdd(splat(first), steps(first->getType(), step)));
  if (mask != nullptr) as_expected = at.CreateOr(as_expected, at.CreateNot(mask));
  if (!is_shared) return all(as_expected);
  Value* const whole = at.CreateAdd(first, at.getInt32(static_cast<std::uint32_t>(i.sources[0].value)));
  return at.CreateAnd(all(as_expected),
                      at.CreateAnd(stays_in_range(first, step, true), stays_in_range(whole, step, true)));
}

// If lanes have unrelated addresses, the access and its record often miss the caches. The store in the record begins to
// load its line when the access has ended, so the code asks for the line before.
void emitter::prefetch_record_of(const instruction& i) {
  const instruction* const record = &i + 1;
  if (mask != nullptr || &i == &code_.back() || !is_record(*record)) return;
  const auto pointer_of_lane = values_of_lanes(pointers_of(*record, view::every), 0);
  Value *const writes = at.getInt32(1), *const keeps = at.getInt32(3), *const is_data = at.getInt32(1);
  for (unsigned lane = 0; lane < lane_count(); ++lane)
    at.CreateIntrinsic(llvm::Intrinsic::prefetch, {at.getPtrTy()}, {pointer_of_lane(lane), writes, keeps, is_data});
}

void emitter::access_contiguous_or_scattered(const instruction& i, const std::function<void(Value*)>& contiguous,
                                             const std::function<void()>& with_gaps,
                                             const std::function<void(Value*)>& scattered) {
  const lane_shape shape = lanes->shape_of(i.sources[0]);
  const auto with_step = [&] {
    if (lanes->has_step_of_size(i)) return contiguous(pointers_of(i, view::first));
    if (with_gaps) return with_gaps();
    // The addresses are a scalar plus constants. The CPU adds constants as part of a gather instruction or a scalar
    // access.
    // A recorded access is aligned, so its record has an exact distance too.
    scattered(at.CreateGEP(at.getInt8Ty(), pointers_of(i, view::first),
                           steps(at.getInt64Ty(), shape.step >> record_shift(i))));
  };
  const auto by_chance = [&] {
    Value* const pointer = [&] {
      const in_view one(*this, view::one);
      lane_ = at.getInt32(0);
      return pointer_of(i, i.sources[0]);
    }();
    contiguous(pointer);
  };
  const auto one_by_one = [&] {
    prefetch_record_of(i);
    scattered(pointers_of(i, view::every));
  };
  if (!shape.has_step() && shape.what != lane_shape::kind::varying) return one_by_one();
  Value* const is_expected = shape.has_step() ? keeps_step(i) : happens_to_be_contiguous(i);
  if (is_expected == nullptr) return with_step();
  llvm::LLVMContext& c = at.getContext();
  llvm::BasicBlock* const fast = llvm::BasicBlock::Create(c, "", function_);
  llvm::BasicBlock* const slow = llvm::BasicBlock::Create(c, "", function_);
  llvm::BasicBlock* const rest = llvm::BasicBlock::Create(c, "", function_);
  const auto weights = shape.has_step() ? llvm::MDBuilder(c).createBranchWeights(16, 1) : nullptr;
  at.CreateCondBr(is_expected, fast, slow, weights);
  at.SetInsertPoint(fast);
  shape.has_step() ? with_step() : by_chance();
  at.CreateBr(rest);
  at.SetInsertPoint(slow);
  one_by_one();
  at.CreateBr(rest);
  at.SetInsertPoint(rest);
}

void emitter::emit_store_in_lanes(const instruction& i) {
  const unsigned bytes = bytes_of(i.types[0]);
  check_alignment_in_lanes(i);
  const auto values = [&](unsigned n) {
    const in_view every(*this, view::every);
    return get(i.sources[1 + n], 8 * bytes);
  };
  const auto store_contiguous = [&](Value* pointer) {
    Value* whole = values(0);
    for (unsigned n = 1; n < i.vector; ++n) {
      // The code first extends both vectors to the final length. Element k of the result is then value k % vector of
      // lane k / vector.
      std::vector<int> wider(std::size_t{lane_count()} * i.vector, -1);
      std::iota(wider.begin(), wider.begin() + lane_count(), 0);
      Value* const more = at.CreateShuffleVector(values(n), wider);
      if (n == 1) {
        std::vector<int> spread_out(wider.size(), -1);
        for (unsigned k = 0; k < lane_count(); ++k) spread_out[std::size_t{k} * i.vector] = static_cast<int>(k);
        whole = at.CreateShuffleVector(whole, spread_out);
      }
      std::vector<int> merged(wider.size());
      std::iota(merged.begin(), merged.end(), 0);
      for (unsigned k = 0; k < lane_count(); ++k)
        merged[std::size_t{k} * i.vector + n] = static_cast<int>(wider.size() + k);
      whole = at.CreateShuffleVector(whole, more, merged);
    }
    if (mask == nullptr) {
      users(at.CreateAlignedStore(whole, pointer, llvm::Align(bytes)));
    } else {
      users(at.CreateMaskedStore(whole, pointer, llvm::Align(bytes), mask_of_elements(i.vector)));
    }
  };
  const auto store_scattered = [&](Value* pointers) {
    if (shared_.has_fast_gathers && bytes >= 4) {
      for (unsigned n = 0; n < i.vector; ++n)
        users(at.CreateMaskedScatter(values(n),
                                     at.CreateGEP(at.getInt8Ty(), pointers, at.getInt64(std::uint64_t{n} * bytes)),
                                     llvm::Align(bytes), mask_of_elements(1)));
      return;
    }
    // Lanes that do not run store into memory that no code reads.
    constexpr unsigned most_bytes = 32;
    if (mask != nullptr)
      pointers = at.CreateSelect(mask, pointers, splat(allocate(llvm::ArrayType::get(at.getInt8Ty(), most_bytes), 16)));
    const auto pointer_of_lane = pointers_of_lanes(i, pointers);
    std::vector<std::function<Value*(unsigned)>> all;
    for (unsigned n = 0; n < i.vector; ++n) {
      const operand& what = i.sources[1 + n];
      if (what.what == operand::kind::immediate)
        all.emplace_back([&](unsigned) { return at.getIntN(8 * bytes, what.value); });
      else
        all.push_back(values_of_lanes(values(n), 1 + n));
    }
    for (unsigned k = 0; k < lane_count(); ++k) {
      Value* const to = pointer_of_lane(k);
      for (unsigned n = 0; n < i.vector; ++n)
        users(at.CreateAlignedStore(all[n](k), at.CreateConstGEP1_64(at.getInt8Ty(), to, std::uint64_t{n} * bytes),
                                    llvm::Align(bytes)));
    }
  };
  access_contiguous_or_scattered(i, store_contiguous, nullptr, store_scattered);
}

}  // namespace hpe::ptx
