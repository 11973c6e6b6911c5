// Memory accesses, and other instructions that are neither pure nor branches.

#include <llvm/IR/MDBuilder.h>

#include <algorithm>
#include <cstddef>

#include "runtime/ptx/compiler/emitter.h"
#include "runtime/ptx/compiler/helpers.h"
#include "runtime/ptx/execution/block.h"
#include "runtime/ptx/execution/textures/texture_access.h"
#include "runtime/ptx/execution/thread_memory.h"
#include "runtime/ptx/program/routine.h"
#include "runtime/ptx/program/special_register.h"

namespace hpe::ptx {

using llvm::Value;

namespace {

llvm::AtomicOrdering ordering_of(const instruction& i) {
  if (i.has(modifier::acquire)) return llvm::AtomicOrdering::Acquire;
  if (i.has(modifier::release)) return llvm::AtomicOrdering::Release;
  if (i.has(modifier::relaxed) || i.has(modifier::volatile_) || i.has(modifier::mmio) || i.has(modifier::cv))
    return llvm::AtomicOrdering::Monotonic;
  return llvm::AtomicOrdering::NotAtomic;
}

}  // namespace

Value* emitter::address_of(const operand& o) {
  if (!o.is_register()) return spread(address_value(o));
  Value* const address = get({operand::kind::reg, false, o.index, 0}, 64);
  return o.value == 0 ? address : at.CreateAdd(address, number(64, o.value));
}

namespace {

// Returns whether the code may add an immediate to a shared address in 64 bits (see shared_offset_of).
bool is_small(std::int32_t immediate) {
  constexpr std::int32_t most = 1 << 30;
  return immediate < most && immediate > -most;
}

}  // namespace

// A shared address has 32 bits, so a register plus an immediate wraps at 32 bits. If the immediate is small, the 64-bit
// sum of the sign-extended register and the immediate is the same for every valid offset in shared memory. This sum
// costs no instruction, because the CPU adds the immediate as part of the access. For invalid offsets outside of the
// padding (class shared_memory), the access causes a page fault.
Value* emitter::shared_offset_of(const operand& o) {
  const auto immediate = static_cast<std::int32_t>(o.value);
  Value* const offset = at.CreateSExt(narrow_shared_offset_of(o), ints(64));
  if (!o.is_register() || immediate == 0 || !is_small(immediate)) return offset;
  return at.CreateAdd(offset, number(64, static_cast<std::uint64_t>(immediate)));
}

Value* emitter::narrow_shared_offset_of(const operand& o) {
  const auto immediate = static_cast<std::int32_t>(o.value);
  if (!o.is_register()) return get(o, 32);
  Value* const base = get({operand::kind::reg, false, o.index, 0}, 32);
  return is_small(immediate) ? base : at.CreateAdd(base, number(32, static_cast<std::uint32_t>(immediate)));
}

Value* emitter::pointer_of(const instruction& i, const operand& o) {
  if (o.what == operand::kind::formal) return at.CreateConstGEP1_64(at.getInt8Ty(), formals, o.value);
  if (o.what == operand::kind::scratch) return at.CreateConstGEP1_64(at.getInt8Ty(), scratch, o.value);
  if (is_record(i)) return record_pointer_of(i, o);
  const address_window window = window_of(i);
  if (window == address_window::own_shared)
    return at.CreateGEP(at.getInt8Ty(), member(offsetof(block_context, shared), at.getPtrTy()), shared_offset_of(o));
  Value* const address = address_of(o);
  if (window == address_window::generic) return at.CreateIntToPtr(address, of_lanes(at.getPtrTy()));
  return call(reinterpret_cast<const void*>(helpers::find_in_cluster), at.getPtrTy(),
              {context, shared_.pointer(&i), address});
}

// Returns the place of the record of an access at `o` (access_recording.h).
Value* emitter::record_pointer_of(const instruction& i, const operand& o) {
  const unsigned shift = record_shift(i);
  const std::uint64_t cut = (std::uint64_t{1} << shift) - 1;
  // The access is aligned, so the immediate can be added after the shift if it has no lower bits.
  const bool is_split = o.is_register() && (o.value & cut) == 0;
  Value* const address = address_of(is_split ? operand{operand::kind::reg, false, o.index, 0} : o);
  const auto later = static_cast<std::uint64_t>(static_cast<std::int64_t>(is_split ? o.value : 0) >> shift);
  Value* const place = at.CreateAdd(shift == 0 ? address : at.CreateLShr(address, shift),
                                    spread(at.CreateAdd(record_colour(i), at.getInt64(i.description + later))));
  return at.CreateIntToPtr(place, of_lanes(at.getPtrTy()));
}

// Returns block_context::record_colour. The blocks of a strip have different colours, and their code does not change
// them.
Value* emitter::record_colour() {
  if (block_x == nullptr) return member(offsetof(block_context, record_colour), at.getInt64Ty(), false);
  Value* const sum = at.CreateAdd(block_x, at.CreateAdd(member(offsetof(block_context, ctaid.y), at.getInt32Ty()),
                                                        member(offsetof(block_context, ctaid.z), at.getInt32Ty())));
  return at.CreateMul(at.CreateZExt(at.CreateAnd(sum, 1), at.getInt64Ty()),
                      at.getInt64(shared_.image.program().recorded.colour_stride));
}

// Returns the distance of the record that the instruction accesses (is_record).
Value* emitter::record_colour(const instruction& i) {
  Value* const own = record_colour();
  const bool is_first = i.has(modifier::recorded_colour_0);
  if (!is_first && !i.has(modifier::recorded_colour_1)) return own;
  const std::uint64_t stride = shared_.image.program().recorded.colour_stride;
  return at.CreateSelect(at.CreateICmpEQ(own, at.getInt64(ordered_colour * stride)), at.getInt64(is_first ? 0 : stride),
                         own);
}

void emitter::emit_load(const instruction& i) {
  if (i.op == opcode::wmma) return emit_fragment(i);
  const type t = i.types[0];
  const unsigned bytes = bytes_of(t);
  Value* const pointer = aligned_pointer_of(i);
  std::vector<Value*> values;
  for (unsigned n = 0; n < i.vector; ++n) {
    llvm::LoadInst* const load = at.CreateAlignedLoad(
        at.getIntNTy(8 * bytes), at.CreateConstGEP1_64(at.getInt8Ty(), pointer, n * bytes), llvm::Align(bytes));
    if (const auto order = ordering_of(i); order != llvm::AtomicOrdering::NotAtomic) load->setAtomic(order);
    if (i.sources[0].what == operand::kind::formal && formals_are_invariant)
      load->setMetadata(llvm::LLVMContext::MD_invariant_load, shared_.invariant);
    values.push_back(is_runtime_memory(i.sources[0]) ? load : users(load));
  }
  for (unsigned n = 0; n < i.vector; ++n)
    set(i.results[n],
        is_signed(t) ? at.CreateSExt(values[n], at.getInt64Ty()) : at.CreateZExt(values[n], at.getInt64Ty()));
}

void emitter::emit_store(const instruction& i) {
  if (i.op == opcode::wmma) return emit_fragment(i);
  const unsigned bytes = bytes_of(i.types[0]);
  Value* const pointer = aligned_pointer_of(i);
  for (unsigned n = 0; n < i.vector; ++n) {
    llvm::StoreInst* const store =
        at.CreateAlignedStore(get(i.sources[1 + n], 8 * bytes),
                              at.CreateConstGEP1_64(at.getInt8Ty(), pointer, n * bytes), llvm::Align(bytes));
    if (const auto order = ordering_of(i); order != llvm::AtomicOrdering::NotAtomic) store->setAtomic(order);
    if (!is_runtime_memory(i.sources[0])) users(store);
  }
}

void emitter::emit_fragment(const instruction& i) {
  const bool is_load = i.kind == kind::load;
  Value* const registers = allocate(llvm::ArrayType::get(at.getInt64Ty(), 8), 16);
  const auto place = [&](std::size_t n) { return at.CreateConstGEP1_64(at.getInt64Ty(), registers, n); };
  if (!is_load)
    for (std::size_t n = 2; n < i.sources.size(); ++n) at.CreateStore(get(i.sources[n], 64), place(n - 2));
  Value* const matrix = pointer_of(i, i.sources[0]);
  const void* const function = is_load ? reinterpret_cast<const void*>(helpers::load_fragment)
                                       : reinterpret_cast<const void*>(helpers::store_fragment);
  call(function, at.getVoidTy(),
       {context, shared_.pointer(&i), at.CreateAnd(thread, 31), matrix, get(i.sources[1], 64), registers});
  if (!is_load) return;
  for (std::size_t n = 0; n < i.results.size(); ++n) set(i.results[n], at.CreateLoad(at.getInt64Ty(), place(n)));
}

bool emitter::is_inline_atomic(const instruction& i) {
  const type t = i.types[0];
  if (t == type::f32 || t == type::f64) return i.has(modifier::op_add) && i.vector == 1;
  if (is_float(t) || bits_of(t) < 32) return false;
  return !i.has(modifier::op_inc) && !i.has(modifier::op_dec);
}

// Returns the bits of the sum of two floats. If the sum is a NaN, its bits are those of the add instruction's result.
Value* emitter::sum_of_bits(type t, Value* a, Value* b) {
  Value* const x = at.CreateBitCast(a, floats(bits_of(t)));
  Value* const y = at.CreateBitCast(b, floats(bits_of(t)));
  Value* const sum = with_exact_nan(at.CreateFAdd(x, y), {y, x});
  return canonical(at.CreateBitCast(sum, ints(bits_of(t))), t == type::f32 ? t : type::none);
}

// Atomically adds to a float in memory that other CPU threads may change.
Value* emitter::emit_atomic_sum(type t, Value* pointer, Value* with) {
  llvm::LLVMContext& c = at.getContext();
  const llvm::MaybeAlign alignment(bytes_of(t));
  llvm::LoadInst* const before = at.CreateAlignedLoad(ints(bits_of(t)), pointer, alignment);
  before->setAtomic(llvm::AtomicOrdering::Monotonic);
  users(before);
  llvm::BasicBlock* const start = at.GetInsertBlock();
  llvm::BasicBlock* const attempt = llvm::BasicBlock::Create(c, "", function_);
  llvm::BasicBlock* const done = llvm::BasicBlock::Create(c, "", function_);
  at.CreateBr(attempt);
  at.SetInsertPoint(attempt);
  llvm::PHINode* const old = at.CreatePHI(before->getType(), 2);
  old->addIncoming(before, start);
  Value* const swap =
      users(at.CreateAtomicCmpXchg(pointer, old, sum_of_bits(t, old, with), alignment,
                                   llvm::AtomicOrdering::SequentiallyConsistent, llvm::AtomicOrdering::Monotonic));
  old->addIncoming(at.CreateExtractValue(swap, 0), attempt);
  at.CreateCondBr(at.CreateExtractValue(swap, 1), done, attempt);
  at.SetInsertPoint(done);
  return old;
}

// One CPU thread runs all threads of a block, so shared memory needs no atomic instructions.
Value* emitter::emit_atomic_inline(const instruction& i, Value* pointer) {
  if (!is_inline_atomic(i)) return nullptr;
  const type t = i.types[0];
  const unsigned w = bits_of(t);
  const bool plain = is_shared_access(i);
  Value* const with = get(i.sources[1], w);
  const llvm::MaybeAlign alignment(bytes_of(t));
  const auto order = llvm::AtomicOrdering::SequentiallyConsistent;
  using enum modifier;
  const modifier op =
      i.modifiers.one_of(op_and, op_or, op_xor, op_add, op_min, op_max, op_inc, op_dec, op_cas, op_exch);
  if (is_float(t) && !plain) return emit_atomic_sum(t, pointer, with);
  if (plain) {
    Value* const old = users(at.CreateAlignedLoad(at.getIntNTy(w), pointer, alignment));
    Value* next = nullptr;
    Value* const less = is_signed(t) ? at.CreateICmpSLT(old, with) : at.CreateICmpULT(old, with);
    switch (op) {
      case op_and: next = at.CreateAnd(old, with); break;
      case op_or: next = at.CreateOr(old, with); break;
      case op_xor: next = at.CreateXor(old, with); break;
      case op_add: next = is_float(t) ? sum_of_bits(t, old, with) : at.CreateAdd(old, with); break;
      case op_min: next = at.CreateSelect(less, old, with); break;
      case op_max: next = at.CreateSelect(less, with, old); break;
      case op_exch: next = with; break;
      case op_cas: next = at.CreateSelect(at.CreateICmpEQ(old, with), get(i.sources[2], w), old); break;
      default: return nullptr;
    }
    users(at.CreateAlignedStore(next, pointer, alignment));
    return old;
  }
  if (op == op_cas) {
    llvm::AtomicCmpXchgInst* const swap =
        at.CreateAtomicCmpXchg(pointer, with, get(i.sources[2], w), alignment, order, order);
    return at.CreateExtractValue(users(swap), 0);
  }
  llvm::AtomicRMWInst::BinOp how = llvm::AtomicRMWInst::BAD_BINOP;
  switch (op) {
    case op_and: how = llvm::AtomicRMWInst::And; break;
    case op_or: how = llvm::AtomicRMWInst::Or; break;
    case op_xor: how = llvm::AtomicRMWInst::Xor; break;
    case op_add: how = llvm::AtomicRMWInst::Add; break;
    case op_min: how = is_signed(t) ? llvm::AtomicRMWInst::Min : llvm::AtomicRMWInst::UMin; break;
    case op_max: how = is_signed(t) ? llvm::AtomicRMWInst::Max : llvm::AtomicRMWInst::UMax; break;
    case op_exch: how = llvm::AtomicRMWInst::Xchg; break;
    default: return nullptr;
  }
  return users(at.CreateAtomicRMW(how, pointer, with, alignment, order));
}

void emitter::emit_atomic(const instruction& i) {
  Value* const pointer = aligned_pointer_of(i);
  Value* old = emit_atomic_inline(i, pointer);
  if (old == nullptr) {
    Value* const c = i.sources.size() > 2 ? get(i.sources[2], 64) : at.getInt64(0);
    old = call(reinterpret_cast<const void*>(i.atomic), at.getInt64Ty(), {pointer, get(i.sources[1], 64), c});
  }
  if (!i.results.empty()) set(i.results[0], old);
}

void emitter::emit_copy(const instruction& i) {
  Value* const size = get(i.sources[2], 64);
  call(reinterpret_cast<const void*>(helpers::copy_async), at.getVoidTy(),
       {context, shared_.pointer(&i), address_of(i.sources[0]), address_of(i.sources[1]), size,
        i.sources.size() > 3 ? get(i.sources[3], 64) : size});
}

void emitter::emit_routine(const instruction& i) {
  Value* const sources = allocate(llvm::ArrayType::get(at.getInt64Ty(), most_routine_sources), 16);
  for (std::size_t n = 0; n < i.sources.size(); ++n)
    at.CreateStore(address_of(i.sources[n]), at.CreateConstGEP1_64(at.getInt64Ty(), sources, n));
  Value* const result = call(reinterpret_cast<const void*>(helpers::routine), at.getInt64Ty(),
                             {context, thread, shared_.pointer(&i), sources});
  if (!i.results.empty()) set(i.results[0], result);
}

void emitter::emit_texture(const instruction& i) {
  Value* const sources = allocate(llvm::ArrayType::get(at.getInt64Ty(), most_texture_sources), 16);
  Value* const results = allocate(llvm::ArrayType::get(at.getInt64Ty(), most_texture_results), 16);
  for (std::size_t n = 0; n < i.sources.size(); ++n)
    at.CreateStore(get(i.sources[n], 64), at.CreateConstGEP1_64(at.getInt64Ty(), sources, n));
  call(reinterpret_cast<const void*>(helpers::access_texture), at.getVoidTy(),
       {context, thread, shared_.pointer(&i), sources, results});
  for (std::size_t n = 0; n < i.results.size(); ++n)
    set(i.results[n], at.CreateLoad(at.getInt64Ty(), at.CreateConstGEP1_64(at.getInt64Ty(), results, n)));
}

void emitter::emit_address_space(const instruction& i) {
  Value* const address = get(i.sources[0], 64);
  const bool converts = i.op == opcode::cvta;
  if (converts && window_of(i) == address_window::generic) return set(i.results[0], address);
  const auto convert = [&] {
    set_member(offsetof(block_context, current), thread);
    return call(reinterpret_cast<const void*>(helpers::convert_address), at.getInt64Ty(),
                {context, shared_.pointer(&i), address});
  };
  if (!converts || !is_shared_access(i)) return set(i.results[0], convert());
  Value* const base = at.CreatePtrToInt(member(offsetof(block_context, shared), at.getPtrTy()), at.getInt64Ty());
  if (!i.has(modifier::to)) return set(i.results[0], at.CreateAdd(address, spread(base)));
  // The address is rarely in the shared memory of another block.
  Value* const offset = at.CreateSub(address, base);
  Value* const size = at.CreateAdd(member(offsetof(block_context, dynamic_shared_offset), at.getInt32Ty()),
                                   member(offsetof(block_context, dynamic_shared_size), at.getInt32Ty()));
  llvm::LLVMContext& c = at.getContext();
  llvm::BasicBlock* const here = at.GetInsertBlock();
  llvm::BasicBlock* const other = llvm::BasicBlock::Create(c, "", function_);
  llvm::BasicBlock* const rest = llvm::BasicBlock::Create(c, "", function_);
  at.CreateCondBr(at.CreateICmpULT(offset, at.CreateZExt(size, at.getInt64Ty())), rest, other,
                  llvm::MDBuilder(c).createBranchWeights(1 << 20, 1));
  at.SetInsertPoint(other);
  Value* const found = convert();
  at.CreateBr(rest);
  at.SetInsertPoint(rest);
  llvm::PHINode* const result = at.CreatePHI(at.getInt64Ty(), 2);
  result->addIncoming(offset, here);
  result->addIncoming(found, other);
  set(i.results[0], result);
}

void emitter::emit_special(const instruction& i) {
  const auto which = static_cast<special_register>(i.sources[0].value);
  const auto of_thread = [&](std::size_t offset) {
    Value* const table = member(offset, at.getPtrTy());
    llvm::LoadInst* const load =
        at.CreateLoad(at.getInt32Ty(), at.CreateGEP(at.getInt32Ty(), table, at.CreateZExt(thread, at.getInt64Ty())));
    load->setMetadata(llvm::LLVMContext::MD_invariant_load, shared_.invariant);
    return own(load);
  };
  const auto of_block = [&](std::size_t offset) { return spread(member(offset, at.getInt32Ty())); };
  const auto next_to_each_other = [&](Value* first) {
    return is_wide() ? at.CreateAdd(splat(first), steps(at.getInt32Ty(), 1)) : first;
  };
  Value* value = nullptr;
  Value* const lane = next_to_each_other(at.CreateAnd(thread, 31));
  Value* const bit = at.CreateShl(number(32, 1), lane);
  using enum special_register;
  switch (which) {
    case tid_x: value = next_to_each_other(of_thread(offsetof(block_context, tid_x))); break;
    case tid_y: value = spread(of_thread(offsetof(block_context, tid_y))); break;
    case tid_z: value = spread(of_thread(offsetof(block_context, tid_z))); break;
    case ntid_x: value = of_block(offsetof(block_context, ntid.x)); break;
    case ntid_y: value = of_block(offsetof(block_context, ntid.y)); break;
    case ntid_z: value = of_block(offsetof(block_context, ntid.z)); break;
    case ctaid_x: value = block_x != nullptr ? spread(block_x) : of_block(offsetof(block_context, ctaid.x)); break;
    case ctaid_y: value = of_block(offsetof(block_context, ctaid.y)); break;
    case ctaid_z: value = of_block(offsetof(block_context, ctaid.z)); break;
    case nctaid_x: value = of_block(offsetof(block_context, nctaid.x)); break;
    case nctaid_y: value = of_block(offsetof(block_context, nctaid.y)); break;
    case nctaid_z: value = of_block(offsetof(block_context, nctaid.z)); break;
    case laneid: value = lane; break;
    case warpid: value = spread(at.CreateLShr(thread, 5)); break;
    case lanemask_eq: value = bit; break;
    case lanemask_lt: value = at.CreateSub(bit, number(32, 1)); break;
    case lanemask_le: value = at.CreateSub(at.CreateShl(bit, 1), number(32, 1)); break;
    case lanemask_gt: value = at.CreateNot(at.CreateSub(at.CreateShl(bit, 1), number(32, 1))); break;
    case lanemask_ge: value = at.CreateNot(at.CreateSub(bit, number(32, 1))); break;
    default:
      value = call(reinterpret_cast<const void*>(helpers::special), at.getInt64Ty(),
                   {context, thread, at.getInt32(static_cast<std::uint32_t>(which))});
      break;
  }
  set(i.results[0], value);
}

void emitter::emit_fence(const instruction& i) {
  if (i.has(modifier::recorded_order))
    return set_member(offsetof(block_context, record_colour),
                      at.getInt64(ordered_colour * shared_.image.program().recorded.colour_stride));
  // One CPU thread runs all threads of a block, so a fence of scope .cta only prevents the compiler from reordering
  // accesses.
  at.CreateFence(llvm::AtomicOrdering::SequentiallyConsistent,
                 i.has(modifier::cta) ? llvm::SyncScope::SingleThread : llvm::SyncScope::System);
}

}  // namespace hpe::ptx
