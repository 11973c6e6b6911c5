// Calls that are not inlined.

#include <algorithm>
#include <cstddef>

#include "runtime/ptx/compiler/emitter.h"
#include "runtime/ptx/compiler/helpers.h"
#include "runtime/ptx/execution/block.h"

namespace hpe::ptx {

using llvm::Value;

void emitter::emit_call(const instruction& i) {
  const program& p = shared_.image.program();
  if (i.sources.empty()) return emit_call_to(i, *p.functions[i.callee], i.callee);
  // The target may be any function whose address the program takes and that has as many parameters and results as the
  // call.
  Value* const target = get(i.sources[0], 64);
  llvm::LLVMContext& c = at.getContext();
  llvm::BasicBlock* const wrong = llvm::BasicBlock::Create(c, "", function_);
  llvm::BasicBlock* const rest = llvm::BasicBlock::Create(c, "", function_);
  llvm::SwitchInst* const choice = at.CreateSwitch(target, wrong);
  for (const std::uint32_t n : shared_.targets_of_pointers) {
    const ptx::function& f = *p.functions[n];
    const auto results = static_cast<std::size_t>(
        std::count_if(f.formals.begin(), f.formals.end(), [](const formal_parameter& q) { return q.is_result; }));
    if (results != i.returns.size() || f.formals.size() - results != i.arguments.size()) continue;
    llvm::BasicBlock* const chosen = llvm::BasicBlock::Create(c, "", function_);
    choice->addCase(at.getInt64(shared_.image.address_of_function(n)), chosen);
    at.SetInsertPoint(chosen);
    emit_call_to(i, f, n);
    at.CreateBr(rest);
  }
  at.SetInsertPoint(wrong);
  fail(static_cast<std::uint32_t>(trap::reason::bad_function), target, i);
  at.CreateUnreachable();
  at.SetInsertPoint(rest);
}

bool has_scalar_parameters(const ptx::function& f) {
  std::size_t results = 0;
  for (const formal_parameter& p : f.formals) {
    if (p.size != 1 && p.size != 2 && p.size != 4 && p.size != 8) return false;
    results += p.is_result ? 1 : 0;
  }
  return results <= 1 && f.formals.size() <= 12;
}

void emitter::emit_scalar_call(const instruction& i, const ptx::function& callee, std::uint32_t number) {
  std::vector<Value*> values{context, thread, at.CreateAdd(local, at.getInt64((local_size + 31) / 16 * 16)), local_end};
  const auto pointer_to = [&](const argument& a) { return at.CreateConstGEP1_64(at.getInt8Ty(), scratch, a.offset); };
  std::size_t n = 0;
  for (const formal_parameter& p : callee.formals) {
    if (p.is_result) continue;
    llvm::Type* const t = at.getIntNTy(8 * p.size);
    values.push_back(n < i.arguments.size()
                         ? at.CreateZExt(at.CreateLoad(t, pointer_to(i.arguments[n])), at.getInt64Ty())
                         : at.getInt64(0));
    ++n;
  }
  Value* const result = at.CreateCall(shared_.functions.at(number), values);
  if (!callee.formals.empty() && callee.formals[0].is_result && !i.returns.empty())
    at.CreateStore(at.CreateTrunc(result, at.getIntNTy(8 * std::min(callee.formals[0].size, i.returns[0].size))),
                   pointer_to(i.returns[0]));
}

void emitter::emit_call_to(const instruction& i, const ptx::function& callee, std::uint32_t number) {
  if (callee.system_call == builtin::none && has_scalar_parameters(callee)) return emit_scalar_call(i, callee, number);
  Value* const memory = allocate(llvm::ArrayType::get(at.getInt8Ty(), std::max(callee.formals_size, 16U)), 16);
  const auto pointer_to = [&](Value* base, std::uint32_t offset) {
    return at.CreateConstGEP1_64(at.getInt8Ty(), base, offset);
  };
  std::size_t n = 0;
  for (const formal_parameter& p : callee.formals) {
    if (p.is_result || n >= i.arguments.size()) continue;
    const argument& a = i.arguments[n++];
    at.CreateMemCpy(pointer_to(memory, p.offset), llvm::Align(16), pointer_to(scratch, a.offset), llvm::Align(16),
                    std::min(a.size, p.size));
  }
  if (callee.system_call != builtin::none) {
    set_member(offsetof(block_context, current), thread);
    call(reinterpret_cast<const void*>(helpers::call_function), at.getVoidTy(),
         {context, shared_.pointer(&callee), memory});
  } else {
    // Each call uses some local memory, so infinite recursion ends in a trap.
    Value* const below = at.CreateAdd(local, at.getInt64((local_size + 31) / 16 * 16));
    at.CreateCall(shared_.functions.at(number), {context, thread, below, local_end, memory});
  }
  n = 0;
  for (const formal_parameter& p : callee.formals) {
    if (!p.is_result || n >= i.returns.size()) continue;
    const argument& r = i.returns[n++];
    at.CreateMemCpy(pointer_to(scratch, r.offset), llvm::Align(16), pointer_to(memory, p.offset), llvm::Align(16),
                    std::min(r.size, p.size));
  }
}

}  // namespace hpe::ptx
