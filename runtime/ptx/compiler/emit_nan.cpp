// NaN results of f64 operations. If one operand is a NaN, the result is this NaN, made quiet (scalar_float.cpp). If
// several operands are NaNs, LLVM does not define which of them is the result, so the emitted code must select it.
//
// The compiler emits a sequence of pure instructions in two versions. The first version does not select NaNs: its
// numbers are right, and its NaNs have arbitrary bits. The second version selects NaNs; it runs if a result that later
// code reads is a NaN.

#include <llvm/IR/MDBuilder.h>

#include <algorithm>

#include "runtime/ptx/compiler/emitter.h"

namespace hpe::ptx {

using llvm::Value;

namespace {

bool is_arithmetic(const instruction& i) {
  if (i.kind != kind::pure || i.types[0] != type::f64) return false;
  switch (i.op) {
    case opcode::add:
    case opcode::sub:
    case opcode::mul:
    case opcode::fma:
    case opcode::mad:
    case opcode::product_less:
    case opcode::less_product:
    case opcode::div:
    case opcode::rcp:
    case opcode::sqrt: return true;
    default: return false;
  }
}

// Returns whether the instruction may read a NaN with arbitrary bits, because its result is then also a NaN or does not
// depend on the bits.
bool passes_nan(const instruction& i) {
  return is_arithmetic(i) || (i.op == opcode::setp && i.types[0] == type::f64) ||
         ((i.op == opcode::neg || i.op == opcode::abs) && i.types[0] == type::f64);
}

}  // namespace

Value* emitter::with_exact_nan(Value* result, llvm::ArrayRef<Value*> in_order) {
  if (!is_exact_ || !result->getType()->getScalarType()->isDoubleTy()) return result;
  Value* chosen = number(64, 0xfff8000000000000);
  for (Value* const operand : llvm::reverse(in_order)) {
    Value* const quiet = at.CreateOr(at.CreateBitCast(operand, ints(64)), std::uint64_t{1} << 51);
    chosen = at.CreateSelect(at.CreateFCmpUNO(operand, operand), quiet, chosen);
  }
  return at.CreateSelect(at.CreateFCmpUNO(result, result), at.CreateBitCast(chosen, result->getType()), result);
}

std::size_t emitter::emit_pure_sequence(std::span<const instruction* const> code) {
  std::size_t count = 0;
  while (count < code.size() && code[count]->kind == kind::pure) ++count;
  code = code.first(count);
  if (std::none_of(code.begin(), code.end(), [](const instruction* i) { return is_arithmetic(*i); })) {
    for (const instruction* const i : code) emit(*i);
    return count;
  }
  // `exposed`: registers that the sequence reads before it writes them. `seen`: results that code outside of the
  // sequence reads.
  std::set<std::uint32_t> written, exposed, results, seen;
  std::map<std::uint32_t, std::uint32_t>
      passed;  // by register: the number of reads by instructions for which passes_nan() is true
  for (const instruction* const i : code) {
    for_each_read(*i, [&](std::uint32_t r) {
      if (!written.contains(r)) exposed.insert(r);
      if (passes_nan(*i)) ++passed[r];
    });
    const std::uint32_t d = i->results[0].is_register() ? i->results[0].index : 0;
    if (!i->results[0].is_register()) continue;
    if (i->guard.is_register() && !written.contains(d)) exposed.insert(d);
    written.insert(d);
    if (passes_nan(*i)) results.insert(d);
  }
  std::erase_if(exposed, [&](std::uint32_t r) { return !written.contains(r); });
  for (const std::uint32_t r : results)
    if (bits_of(registers_[r]) == 64 && (exposed.contains(r) || reads_of(r) != passed[r])) seen.insert(r);

  std::vector<std::pair<llvm::AllocaInst*, Value*>> before;
  for (const std::uint32_t r : exposed)
    for (const view v : views_of(shape_of(r).what))
      before.emplace_back(slot(r, v), at.CreateLoad(slot(r, v)->getAllocatedType(), slot(r, v)));
  is_exact_ = false;
  for (const instruction* const i : code) emit(*i);
  is_exact_ = true;
  Value* wrong = nullptr;
  for (const std::uint32_t r : seen) {
    const bool is_varying = shape_of(r).what == lane_shape::kind::varying;
    const in_view here(*this, is_varying ? view::every : view::first);
    Value* const value = at.CreateBitCast(get_raw(r), floats(64));
    Value* const is_nan = at.CreateFCmpUNO(value, value);
    Value* const one = is_varying ? any(is_nan) : is_nan;
    wrong = wrong == nullptr ? one : at.CreateOr(wrong, one);
  }
  if (wrong == nullptr) return count;
  llvm::LLVMContext& c = at.getContext();
  llvm::BasicBlock* const again = llvm::BasicBlock::Create(c, "", function_);
  llvm::BasicBlock* const rest = llvm::BasicBlock::Create(c, "", function_);
  at.CreateCondBr(wrong, again, rest, llvm::MDBuilder(c).createBranchWeights(1, 1 << 20));
  at.SetInsertPoint(again);
  for (const auto& [slot, value] : before) at.CreateStore(value, slot);
  for (const instruction* const i : code) emit(*i);
  at.CreateBr(rest);
  at.SetInsertPoint(rest);
  return count;
}

}  // namespace hpe::ptx
