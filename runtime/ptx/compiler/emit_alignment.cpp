// Checks of the alignment of addresses. A GPU refuses an access to an address that is not a multiple of the access
// size, but the CPU would execute the access.
//
// One test and one branch, which is normally not taken, check all accesses of a basic block whose addresses are known
// before the first of these accesses. Therefore the compiler emits the code that computes the addresses before the
// test. The compiler moves an instruction past another instruction only if neither of them writes a register that the
// other uses.

#include <llvm/IR/MDBuilder.h>

#include <algorithm>
#include <set>

#include "runtime/ptx/compiler/emitter.h"
#include "runtime/ptx/compiler/helpers.h"
#include "runtime/ptx/execution/block.h"
#include "runtime/ptx/execution/thread_memory.h"

namespace hpe::ptx {

using llvm::Value;

unsigned alignment_of(const instruction& i) {
  if ((i.kind != kind::load && i.kind != kind::store && i.kind != kind::atomic) || i.op == opcode::wmma) return 1;
  if (is_record(i)) return 1;  // the code has checked the recorded access
  const bool is_parameter = i.has(modifier::param) || i.has(modifier::param_entry) || i.has(modifier::param_func);
  if (is_runtime_memory(i.sources[0]) || is_parameter || window_of(i) == address_window::cluster_shared) return 1;
  return bytes_of(i.types[0]) * (i.kind == kind::atomic ? 1U : i.vector);
}

namespace {

constexpr std::size_t most_ahead = 300;  // limits the number of instructions to examine for one test

bool can_share_a_check(const instruction& i) {
  return (alignment_of(i) > 1 || is_record(i)) && i.sources[0].is_register() && !i.guard.is_register();
}

// Returns whether an instruction only computes its results, so that it may run earlier.
bool can_be_early(const instruction& i) {
  if (i.kind == kind::load) return i.sources[0].what == operand::kind::formal;
  return i.kind == kind::pure ||
         (i.kind == kind::address_space && i.op == opcode::cvta && window_of(i) == address_window::generic);
}

using numbers = std::set<std::uint32_t>;

void add_reads(const instruction& i, numbers& to) {
  for (const operand& o : i.sources)
    if (o.is_register()) to.insert(o.index);
  if (!i.guard.is_register()) return;
  to.insert(i.guard.index);
  for (const operand& o : i.results)  // the register may keep its old value after a guarded write
    if (o.is_register()) to.insert(o.index);
}

void add_writes(const instruction& i, numbers& to) {
  for (const operand& o : i.results)
    if (o.is_register()) to.insert(o.index);
}

bool meet(const numbers& a, const numbers& b) {
  return std::any_of(a.begin(), a.end(), [&](std::uint32_t n) { return b.contains(n); });
}

// Returns, for each instruction, whether it computes the address of an access.
std::vector<bool> find_address_code(std::span<const instruction> code) {
  std::vector<bool> result(code.size());
  numbers wanted;
  for (std::size_t n = code.size(); n-- > 0;) {
    const instruction& i = code[n];
    if (can_share_a_check(i)) wanted.insert(i.sources[0].index);
    numbers written;
    add_writes(i, written);
    if (!can_be_early(i) || !meet(written, wanted)) continue;
    result[n] = true;
    add_reads(i, wanted);
  }
  return result;
}

// Returns the code with the instructions that compute addresses moved to the front, unless they depend on instructions
// that they would pass.
std::vector<const instruction*> with_addresses_first(std::span<const instruction> code) {
  const std::vector<bool> is_address_code = find_address_code(code);
  std::vector<const instruction*> early, late;
  numbers late_reads, late_writes;
  for (std::size_t n = 0; n < code.size(); ++n) {
    numbers reads, writes;
    add_reads(code[n], reads);
    add_writes(code[n], writes);
    if (is_address_code[n] && !meet(reads, late_writes) && !meet(writes, late_writes) && !meet(writes, late_reads)) {
      early.push_back(&code[n]);
      continue;
    }
    late.push_back(&code[n]);
    late_reads.merge(reads);
    late_writes.merge(writes);
  }
  early.insert(early.end(), late.begin(), late.end());
  return early;
}

// Returns the accesses that may share a test, and whose addresses are known before the first instruction.
std::vector<const instruction*> with_known_addresses(std::span<const instruction* const> code) {
  std::vector<const instruction*> result;
  numbers written;
  for (const instruction* const i : code.first(std::min(code.size(), most_ahead))) {
    if (i->kind == kind::call) break;
    if (can_share_a_check(*i) && !written.contains(i->sources[0].index)) result.push_back(i);
    add_writes(*i, written);
  }
  return result;
}

}  // namespace

void emitter::emit(std::span<const instruction> code) {
  const std::vector<const instruction*> ordered = with_addresses_first(code);
  for (std::size_t n = 0; n < ordered.size();) {
    n += emit_pure_sequence(std::span(ordered).subspan(n));
    if (n == ordered.size()) break;
    if (can_share_a_check(*ordered[n]) && !is_record(*ordered[n]) && !checked_.contains(ordered[n])) {
      auto group = with_known_addresses(std::span(ordered).subspan(n));
      std::erase_if(group, [](const instruction* i) { return is_record(*i); });
      check_alignment(group);
      checked_.insert(group.begin(), group.end());
    }
    emit(*ordered[n++]);
  }
}

void emitter::emit_in_lanes(std::span<const instruction> code, const std::function<void()>& end) {
  const std::vector<const instruction*> ordered = with_addresses_first(code);
  const auto emit_all = [&](std::span<const instruction* const> part) {
    for (std::size_t n = 0; n < part.size();) {
      n += emit_pure_sequence(part.subspan(n));
      const std::size_t updated = emit_update(part.subspan(n));
      n += updated;
      if (updated == 0 && n < part.size()) emit(*part[n++]);
    }
  };
  const auto first = std::find_if(ordered.begin(), ordered.end(),
                                  [&](const instruction* i) { return can_share_a_check(*i) && is_simple_if_full(*i); });
  std::vector<const instruction*> group;
  if (first != ordered.end()) group = with_known_addresses(std::span(first, ordered.end()));
  std::erase_if(group, [&](const instruction* i) { return !is_simple_if_full(*i); });
  if (group.empty()) {
    emit_all(ordered);
    return end();
  }
  const std::span<const instruction* const> rest(first, ordered.end());
  const auto early = std::span(ordered).first(ordered.size() - rest.size());
  llvm::LLVMContext& c = at.getContext();
  const auto new_block = [&] { return llvm::BasicBlock::Create(c, "", function_); };
  llvm::BasicBlock *const full = new_block(), *const simple = new_block(), *const partial = new_block(),
                          *const other = new_block();
  const auto usually = [&](Value* condition, llvm::BasicBlock* then, llvm::BasicBlock* otherwise) {
    at.CreateCondBr(condition, then, otherwise, llvm::MDBuilder(c).createBranchWeights(16, 1));
  };
  Value* const before = mask;
  // The branch on the mask is separate. If all lanes come from one block, LLVM knows that the mask is full, and removes
  // this branch.
  usually(all(mask), full, partial);
  at.SetInsertPoint(full);
  mask = nullptr;
  emit_all(early);
  usually(are_simple(group), simple, other);
  at.SetInsertPoint(simple);
  simple_.insert(group.begin(), group.end());
  emit_all(rest);
  end();
  simple_.clear();
  mask = before;
  at.SetInsertPoint(partial);
  emit_all(early);
  at.CreateBr(other);
  at.SetInsertPoint(other);
  emit_all(rest);
  end();
}

void emitter::check_alignment(std::span<const instruction* const> accesses) {
  llvm::LLVMContext& c = at.getContext();
  const auto low_bits = [&](const instruction& i) {
    return at.CreateAnd(address_of(i.sources[0]), alignment_of(i) - 1);
  };
  const auto is_wrong = [&](Value* bits) { return at.CreateICmpNE(bits, at.getInt64(0)); };
  Value* any = at.getInt64(0);
  for (const instruction* const i : accesses) any = at.CreateOr(any, low_bits(*i));
  if (const auto* const known = llvm::dyn_cast<llvm::ConstantInt>(any); known != nullptr && known->isZero()) return;
  llvm::BasicBlock* const wrong = llvm::BasicBlock::Create(c, "", function_);
  llvm::BasicBlock* const rest = llvm::BasicBlock::Create(c, "", function_);
  at.CreateCondBr(is_wrong(any), wrong, rest, llvm::MDBuilder(c).createBranchWeights(1, 1 << 20));

  // This code finds the first misaligned access of the group at run time, and reports it.
  at.SetInsertPoint(wrong);
  for (const instruction* const i : accesses) {
    llvm::BasicBlock* const here = at.GetInsertBlock();
    llvm::BasicBlock* const told = misaligned_block();
    misaligned_address_->addIncoming(at.CreatePtrToInt(pointer_of(*i, i->sources[0]), at.getInt64Ty()), here);
    misaligned_access_->addIncoming(shared_.pointer(i), here);
    if (i == accesses.back()) {
      at.CreateBr(told);
    } else {
      llvm::BasicBlock* const next = llvm::BasicBlock::Create(c, "", function_);
      at.CreateCondBr(is_wrong(low_bits(*i)), told, next);
      at.SetInsertPoint(next);
    }
  }
  at.SetInsertPoint(rest);
}

llvm::BasicBlock* emitter::misaligned_block() {
  if (misaligned_ != nullptr) return misaligned_;
  const llvm::IRBuilderBase::InsertPointGuard later(at);
  misaligned_ = llvm::BasicBlock::Create(at.getContext(), "misaligned", function_);
  at.SetInsertPoint(misaligned_);
  misaligned_address_ = at.CreatePHI(at.getInt64Ty(), 2);
  misaligned_access_ = at.CreatePHI(at.getPtrTy(), 2);
  call(reinterpret_cast<const void*>(helpers::fail), at.getVoidTy(),
       {context, at.getInt32(static_cast<std::uint32_t>(trap::reason::misaligned)), misaligned_address_,
        misaligned_access_});
  at.CreateUnreachable();
  return misaligned_;
}

Value* emitter::aligned_pointer_of(const instruction& i) {
  const instruction* const one = &i;
  if (alignment_of(i) > 1 && !checked_.contains(&i)) check_alignment({&one, 1});
  return pointer_of(i, i.sources[0]);
}

}  // namespace hpe::ptx
