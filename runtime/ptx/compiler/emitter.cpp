// Registers, operands, and accesses to hpe's own memory.

#include "runtime/ptx/compiler/emitter.h"

#include <algorithm>
#include <cstddef>

#include "runtime/ptx/compiler/helpers.h"
#include "runtime/ptx/execution/block.h"

namespace hpe::ptx {

using llvm::Value;

module_context::module_context(const ptx::image& i, const link_names& n, llvm::Module& m)
    : image(i), names(n), module(m) {
  llvm::LLVMContext& c = m.getContext();
  invariant = llvm::MDNode::get(c, {});
  llvm::MDNode* const domain = llvm::MDNode::get(c, {llvm::MDString::get(c, "hpe")});
  own_scope = llvm::MDNode::get(c, {llvm::MDNode::get(c, {llvm::MDString::get(c, "own"), domain})});
  for (std::uint32_t f = 0; f < i.program().functions.size(); ++f) numbers[i.program().functions[f].get()] = f;
}

llvm::Constant* module_context::pointer(const void* p) const {
  return module.getOrInsertGlobal(names.name_of(p), llvm::Type::getInt8Ty(module.getContext()));
}

llvm::Constant* module_context::variable(std::uint32_t symbol) const {
  llvm::Type* const byte = llvm::Type::getInt8Ty(module.getContext());
  auto* const found =
      llvm::cast<llvm::GlobalVariable>(module.getOrInsertGlobal(link_names::name_of_variable(symbol), byte));
  constexpr std::uint32_t most = 256;  // the memory for variables always has this alignment
  found->setAlignment(llvm::Align(std::min(most, image.program().symbols[symbol].alignment)));
  return found;
}

emitter::emitter(module_context& shared, llvm::Function* into, const std::vector<instruction>& code,
                 const std::vector<type>& registers, const loose_floats& loose)
    : at(shared.module.getContext()),
      shared_(shared),
      function_(into),
      code_(code),
      registers_(registers),
      loose_(loose) {
  for (auto& slots : slots_) slots.resize(registers.size());
  linear_slots_.resize(registers.size());
}

llvm::AllocaInst* emitter::allocate_slot(llvm::Type* t) {
  llvm::IRBuilder<> entry(&function_->getEntryBlock(), function_->getEntryBlock().begin());
  used_.push_back(entry.CreateAlloca(t));
  return used_.back();
}

llvm::AllocaInst* emitter::slot(std::uint32_t r, view v) {
  llvm::AllocaInst*& result = slots_[static_cast<std::size_t>(v)][r];
  if (result == nullptr) {
    llvm::Type* t = type_of(r);
    if (v == view::every) t = llvm::FixedVectorType::get(t, lane_count());
    result = allocate_slot(t);
  }
  return result;
}

llvm::AllocaInst* emitter::linear_slot(std::uint32_t r) {
  llvm::AllocaInst*& result = linear_slots_[r];
  if (result == nullptr) result = allocate_slot(at.getInt1Ty());
  return result;
}

// This code runs at the beginning of a thread, but is emitted last, because only then the set of used registers is
// known.
void emitter::clear_registers() {
  for (llvm::AllocaInst* const slot : used_)
    at.CreateStore(llvm::Constant::getNullValue(slot->getAllocatedType()), slot);
}

Value* emitter::get_raw(std::uint32_t r) {
  const lane_shape shape = shape_of(r);
  view from = view::first;
  if (shape.what == lane_shape::kind::varying) from = view::every;
  if (shape.what == lane_shape::kind::widened) from = view_;
  const bool is_one = view_ == view::one;
  if (const auto copy = copies_.find(r); is_one && copy != copies_.end())
    return own(
        at.CreateLoad(type_of(r), at.CreateGEP(type_of(r), copy->second, at.CreateZExt(lane_, at.getInt64Ty())), true));
  if (is_one && shape.what == lane_shape::kind::widened) from = view::every;
  llvm::AllocaInst* const place = slot(r, from);
  Value* const value = at.CreateLoad(place->getAllocatedType(), place);
  if (from == view::every) return is_one ? at.CreateExtractElement(value, lane_) : value;
  if (from == view_ || view_ == view::first) return value;
  if (shape.what != lane_shape::kind::linear) return spread(value);
  if (is_wide()) return at.CreateAdd(splat(value), steps(type_of(r), shape.step));
  llvm::Constant* const step = llvm::ConstantInt::get(type_of(r), static_cast<std::uint64_t>(shape.step));
  return at.CreateAdd(value, at.CreateMul(at.CreateZExtOrTrunc(lane_, type_of(r)), step));
}

void emitter::set_raw(std::uint32_t r, Value* value) {
  const lane_shape::kind what = shape_of(r).what;
  view to = view::first;
  if (what == lane_shape::kind::widened) to = view_;
  if (what == lane_shape::kind::varying) {
    to = view::every;
    if (view_ == view::one) {
      const in_view every(*this, view::every);
      value = at.CreateInsertElement(get_raw(r), value, lane_);
    } else if (mask != nullptr && kept != nullptr && kept->has(r))
      value = at.CreateSelect(mask, value, get_raw(r));
  }
  at.CreateStore(value, slot(r, to));
}

Value* emitter::canonical(Value* bits, type t) {
  if (t == type::none) return bits;
  Value* const value = at.CreateBitCast(bits, floats(32));
  return at.CreateSelect(at.CreateFCmpUNO(value, value), number(32, 0x7fffffff), bits);
}

// The address is a multiple of 16. The mask makes this known to LLVM.
Value* emitter::known_aligned(Value* address) { return at.CreateAnd(address, ~std::uint64_t{15}); }

Value* emitter::address_value(const operand& o) {
  switch (o.what) {
    case operand::kind::symbol: {
      const symbol& s = shared_.image.program().symbols[o.index];
      if (s.where != symbol::space::shared)
        return at.CreateAdd(at.CreatePtrToInt(shared_.variable(o.index), at.getInt64Ty()), at.getInt64(o.value));
      if (!s.is_dynamic_shared) return at.getInt64(s.shared_offset + o.value);
      Value* const base = member(offsetof(block_context, dynamic_shared_offset), at.getInt32Ty());
      return at.CreateAdd(known_aligned(at.CreateZExt(base, at.getInt64Ty())), at.getInt64(o.value));
    }
    case operand::kind::formal: return at.CreateAdd(at.CreatePtrToInt(formals, at.getInt64Ty()), at.getInt64(o.value));
    case operand::kind::scratch: return at.CreateAdd(at.CreatePtrToInt(scratch, at.getInt64Ty()), at.getInt64(o.value));
    case operand::kind::local: return at.CreateAdd(local, at.getInt64(o.value));
    case operand::kind::function: return at.getInt64(shared_.image.address_of_function(o.index));
    default: return at.getInt64(o.value);
  }
}

Value* emitter::get(const operand& o, unsigned bits) {
  llvm::Type* const wanted = ints(bits);
  if (o.what == operand::kind::immediate)
    return llvm::ConstantInt::get(wanted, bits >= 64 ? o.value : o.value & ((std::uint64_t{1} << bits) - 1));
  if (o.what == operand::kind::none) return llvm::ConstantInt::get(wanted, 0);
  if (!o.is_register()) return at.CreateZExtOrTrunc(spread(address_value(o)), wanted);
  Value* value = canonical(get_raw(o.index), loose_.of(o.index));
  if (o.negated) value = at.CreateNot(value);
  return at.CreateZExtOrTrunc(value, wanted);
}

Value* emitter::get_float(const operand& o, type t) {
  llvm::Type* const as = floats(bits_of(t));
  if (o.is_register() && bits_of(registers_[o.index]) == bits_of(t)) return at.CreateBitCast(get_raw(o.index), as);
  return at.CreateBitCast(get(o, bits_of(t)), as);
}

void emitter::set(const operand& o, Value* value) {
  if (o.is_register()) set_raw(o.index, at.CreateZExtOrTrunc(value, of_lanes(type_of(o.index))));
}

void emitter::set_float(const operand& o, Value* value, bool is_loose) {
  if (!o.is_register()) return;
  Value* const bits = at.CreateBitCast(value, ints(value->getType()->getScalarSizeInBits()));
  set(o, is_loose && loose_.of(o.index) == type::none ? canonical(bits, type::f32) : bits);
}

Value* emitter::condition(const operand& guard) { return get(guard, 1); }

Value* emitter::member(std::size_t offset, llvm::Type* t, bool invariant) {
  llvm::LoadInst* const load = at.CreateLoad(t, at.CreateConstGEP1_64(at.getInt8Ty(), context, offset));
  if (invariant) load->setMetadata(llvm::LLVMContext::MD_invariant_load, shared_.invariant);
  return own(load);
}

void emitter::set_member(std::size_t offset, Value* value) {
  own(at.CreateStore(value, at.CreateConstGEP1_64(at.getInt8Ty(), context, offset)));
}

llvm::Instruction* emitter::own(llvm::Instruction* access) {
  access->setMetadata(llvm::LLVMContext::MD_alias_scope, shared_.own_scope);
  return access;
}

llvm::Instruction* emitter::users(llvm::Instruction* access) {
  access->setMetadata(llvm::LLVMContext::MD_noalias, shared_.own_scope);
  return access;
}

Value* emitter::call(const void* function, llvm::Type* result, llvm::ArrayRef<Value*> arguments, bool pure) {
  std::vector<llvm::Type*> types;
  for (Value* const a : arguments) types.push_back(a->getType());
  llvm::CallInst* const made =
      at.CreateCall(llvm::FunctionType::get(result, types, false), shared_.pointer(function), arguments);
  made->setDoesNotThrow();
  if (pure) {
    made->setDoesNotAccessMemory();
    made->addFnAttr(llvm::Attribute::WillReturn);
  }
  return made;
}

llvm::AllocaInst* emitter::allocate(llvm::Type* t, std::uint32_t alignment) {
  llvm::IRBuilder<> entry(&function_->getEntryBlock(), function_->getEntryBlock().begin());
  llvm::AllocaInst* const made = entry.CreateAlloca(t);
  made->setAlignment(llvm::Align(alignment));
  return made;
}

void emitter::fail(std::uint32_t why, Value* address, const instruction& i) {
  call(reinterpret_cast<const void*>(helpers::fail), at.getVoidTy(),
       {context, at.getInt32(why), address, shared_.pointer(&i)});
}

void emitter::emit(const instruction& i) {
  if (i.kind == kind::nothing) return;
  if (lanes != nullptr) return emit_in_lanes(i);
  if (i.kind == kind::pure) return emit_pure(i);
  llvm::BasicBlock* rest = nullptr;
  if (i.guard.is_register()) {
    llvm::LLVMContext& c = at.getContext();
    llvm::BasicBlock* const guarded = llvm::BasicBlock::Create(c, "", function_);
    rest = llvm::BasicBlock::Create(c, "", function_);
    at.CreateCondBr(condition(i.guard), guarded, rest);
    at.SetInsertPoint(guarded);
  }
  switch (i.kind) {
    case kind::special: emit_special(i); break;
    case kind::load: emit_load(i); break;
    case kind::store: emit_store(i); break;
    case kind::atomic: emit_atomic(i); break;
    case kind::copy_async: emit_copy(i); break;
    case kind::texture: emit_texture(i); break;
    case kind::address_space: emit_address_space(i); break;
    case kind::routine: emit_routine(i); break;
    case kind::fence: emit_fence(i); break;
    case kind::call: emit_call(i); break;
    default: break;
  }
  if (rest != nullptr) {
    at.CreateBr(rest);
    at.SetInsertPoint(rest);
  }
}

}  // namespace hpe::ptx
