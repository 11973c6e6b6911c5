// Accesses to addresses that are no multiples of their sizes, which a GPU refuses and this machine would carry out.

#include <llvm/IR/MDBuilder.h>

#include "runtime/ptx/block.h"
#include "runtime/ptx/compiler/emitter.h"
#include "runtime/ptx/compiler/helpers.h"
#include "runtime/ptx/thread_memory.h"

namespace hpe::ptx {

using llvm::Value;

// On a branch that is never taken. Where LLVM sees from the address that it is aligned, nothing is left of it; in a
// loop over elements it is about the address of the first one.
void emitter::check_alignment(const instruction& i, Value* address, Value* pointer, unsigned bytes) {
  Value* const is_wrong = at.CreateICmpNE(at.CreateAnd(address, bytes - 1), at.getInt64(0));
  if (const auto* const known = llvm::dyn_cast<llvm::ConstantInt>(is_wrong); known != nullptr && known->isZero())
    return;
  llvm::LLVMContext& c = at.getContext();
  if (misaligned_ == nullptr) {
    const llvm::IRBuilderBase::InsertPointGuard later(at);
    misaligned_ = llvm::BasicBlock::Create(c, "misaligned", function_);
    at.SetInsertPoint(misaligned_);
    misaligned_address_ = at.CreatePHI(at.getInt64Ty(), 2);
    misaligned_access_ = at.CreatePHI(at.getPtrTy(), 2);
    call(reinterpret_cast<const void*>(helpers::fail), at.getVoidTy(),
         {context, at.getInt32(static_cast<std::uint32_t>(fault::reason::misaligned)), misaligned_address_,
          misaligned_access_});
    at.CreateUnreachable();
  }
  misaligned_address_->addIncoming(at.CreatePtrToInt(pointer, at.getInt64Ty()), at.GetInsertBlock());
  misaligned_access_->addIncoming(shared_.pointer(&i), at.GetInsertBlock());
  llvm::BasicBlock* const rest = llvm::BasicBlock::Create(c, "", function_);
  at.CreateCondBr(is_wrong, misaligned_, rest, llvm::MDBuilder(c).createBranchWeights(1, 1 << 20));
  at.SetInsertPoint(rest);
}

Value* emitter::aligned_pointer_of(const instruction& i, const operand& o, unsigned bytes) {
  Value* const pointer = pointer_of(i, o);
  const bool is_parameter = i.has(modifier::param) || i.has(modifier::param_entry) || i.has(modifier::param_func);
  if (bytes == 1 || is_runtime_memory(o) || is_parameter) return pointer;
  // find_in_cluster looks itself.
  if (window_of(i) != address_window::cluster_shared) check_alignment(i, address_of(o), pointer, bytes);
  return pointer;
}

}  // namespace hpe::ptx
