#include "runtime/ptx/compiler/device_function.h"

#include <cstddef>

#include "runtime/ptx/execution/block.h"

namespace hpe::ptx {

void declare_device_function(module_context& shared, std::uint32_t number) {
  llvm::LLVMContext& c = shared.module.getContext();
  llvm::Type* const pointer = llvm::PointerType::get(c, 0);
  llvm::Type* const i64 = llvm::Type::getInt64Ty(c);
  const function& what = *shared.image.program().functions[number];
  std::vector<llvm::Type*> parameters{pointer, llvm::Type::getInt32Ty(c), i64, i64};
  if (has_scalar_parameters(what)) {
    for (const formal_parameter& p : what.formals)
      if (!p.is_result) parameters.push_back(i64);
  } else {
    parameters.push_back(pointer);
  }
  llvm::FunctionType* const signature =
      llvm::FunctionType::get(has_scalar_parameters(what) ? i64 : llvm::Type::getVoidTy(c), parameters, false);
  llvm::Function* const f = llvm::Function::Create(signature, llvm::Function::InternalLinkage,
                                                   "function_" + std::to_string(number), shared.module);
  f->setDoesNotThrow();
  shared.functions[number] = f;
}

void emit_device_function(module_context& shared, std::uint32_t number) {
  const function& what = *shared.image.program().functions[number];
  llvm::Function* const f = shared.functions.at(number);
  llvm::LLVMContext& c = shared.module.getContext();
  llvm::BasicBlock* const entry = llvm::BasicBlock::Create(c, "entry", f);
  llvm::BasicBlock* const start = llvm::BasicBlock::Create(c, "start", f);
  const control_flow flow(what.code, what.registers.size());
  const loose_floats loose(what.code, what.registers.size());
  emitter e(shared, f, what.code, what.registers, loose);
  e.context = f->getArg(0);
  e.thread = f->getArg(1);
  const bool scalars = has_scalar_parameters(what);
  e.local_size = what.local_size;
  e.at.SetInsertPoint(start);
  e.local = e.known_aligned(f->getArg(2));
  e.scratch = e.allocate(llvm::ArrayType::get(e.at.getInt8Ty(), std::max(what.scratch_size, 16U)), 16);

  if (scalars) {
    e.formals = e.allocate(llvm::ArrayType::get(e.at.getInt8Ty(), std::max(what.formals_size, 16U)), 16);
    unsigned n = 4;
    for (const formal_parameter& p : what.formals)
      if (!p.is_result)
        e.at.CreateStore(e.at.CreateTrunc(f->getArg(n++), e.at.getIntNTy(8 * p.size)),
                         e.at.CreateConstGEP1_64(e.at.getInt8Ty(), e.formals, p.offset));
  } else {
    e.formals = f->getArg(4);
  }

  // Emits a trap for a call that needs more local memory than is left. This trap also ends infinite recursion.
  llvm::BasicBlock* const full = llvm::BasicBlock::Create(c, "full", f);
  llvm::BasicBlock* const room = llvm::BasicBlock::Create(c, "room", f);
  e.local_end = f->getArg(3);
  e.at.CreateCondBr(e.at.CreateICmpUGT(e.at.CreateAdd(e.local, e.at.getInt64(what.local_size)), e.local_end), full,
                    room);
  e.at.SetInsertPoint(full);
  e.set_member(offsetof(block_context, current), e.thread);
  e.fail(static_cast<std::uint32_t>(trap::reason::stack), e.at.getInt64(0), what.code[0]);
  e.at.CreateUnreachable();

  std::vector<llvm::BasicBlock*> blocks;
  for (std::size_t n = 0; n < flow.blocks().size(); ++n) blocks.push_back(llvm::BasicBlock::Create(c, "", f));
  for (std::size_t n = 0; n < flow.blocks().size(); ++n) {
    const basic_block& b = flow.blocks()[n];
    e.at.SetInsertPoint(blocks[n]);
    const instruction& i = what.code[b.last - 1];
    const std::uint32_t after = flow.block_at(b.last);
    const bool leaves = i.kind == kind::ret || i.kind == kind::trap;
    const bool falls_through = i.targets.empty() && !leaves;
    e.emit(std::span(what.code).subspan(b.first, b.last - b.first - (falls_through ? 0 : 1)));
    if (falls_through) {
      e.at.CreateBr(blocks[after]);
      continue;
    }
    if (i.guard.is_register()) {
      llvm::BasicBlock* const taken = llvm::BasicBlock::Create(c, "", f);
      e.at.CreateCondBr(e.condition(i.guard), taken, blocks[after]);
      e.at.SetInsertPoint(taken);
    }
    if (i.kind == kind::ret && scalars) {
      const bool has_result = !what.formals.empty() && what.formals[0].is_result;
      e.at.CreateRet(has_result ? e.at.CreateZExt(e.at.CreateLoad(e.at.getIntNTy(8 * what.formals[0].size), e.formals),
                                                  e.at.getInt64Ty())
                                : e.at.getInt64(0));
    } else if (i.kind == kind::ret) {
      e.at.CreateRetVoid();
    } else if (i.kind == kind::trap) {
      e.set_member(offsetof(block_context, current), e.thread);
      e.fail(static_cast<std::uint32_t>(trap::reason::trap), e.at.getInt64(0), i);
      e.at.CreateUnreachable();
    } else if (i.kind == kind::branch) {
      e.at.CreateBr(blocks[flow.block_at(i.targets[0])]);
    } else {
      llvm::BasicBlock* const wrong = llvm::BasicBlock::Create(c, "", f);
      llvm::SwitchInst* const choice = e.at.CreateSwitch(e.get(i.sources[0], 32), wrong);
      for (std::size_t t = 0; t < i.targets.size(); ++t)
        choice->addCase(e.at.getInt32(static_cast<std::uint32_t>(t)), blocks[flow.block_at(i.targets[t])]);
      e.at.SetInsertPoint(wrong);
      e.fail(static_cast<std::uint32_t>(trap::reason::illegal), e.at.getInt64(0), i);
      e.at.CreateUnreachable();
    }
  }
  e.at.SetInsertPoint(room);
  e.clear_registers();
  e.at.CreateBr(blocks[0]);
  e.at.SetInsertPoint(entry);
  e.at.CreateBr(start);
}

}  // namespace hpe::ptx
