// Comparisons (setp) of integers, f16, bf16, f32 and f64. Scalar functions (scalar.h) execute all other comparisons,
// such as set and testp.

#include "runtime/ptx/arithmetic/scalar.h"
#include "runtime/ptx/compiler/emitter.h"

namespace hpe::ptx {

using llvm::Value;

namespace {

llvm::CmpInst::Predicate float_predicate(modifier how) {
  using llvm::CmpInst;
  switch (how) {
    case modifier::eq: return CmpInst::FCMP_OEQ;
    case modifier::ne: return CmpInst::FCMP_ONE;
    case modifier::lt: return CmpInst::FCMP_OLT;
    case modifier::le: return CmpInst::FCMP_OLE;
    case modifier::gt: return CmpInst::FCMP_OGT;
    case modifier::ge: return CmpInst::FCMP_OGE;
    case modifier::equ: return CmpInst::FCMP_UEQ;
    case modifier::neu: return CmpInst::FCMP_UNE;
    case modifier::ltu: return CmpInst::FCMP_ULT;
    case modifier::leu: return CmpInst::FCMP_ULE;
    case modifier::gtu: return CmpInst::FCMP_UGT;
    case modifier::geu: return CmpInst::FCMP_UGE;
    case modifier::num: return CmpInst::FCMP_ORD;
    case modifier::nan: return CmpInst::FCMP_UNO;
    default: return CmpInst::BAD_FCMP_PREDICATE;
  }
}

}  // namespace

llvm::CmpInst::Predicate integer_predicate(modifier how, bool s) {
  using llvm::CmpInst;
  switch (how) {
    case modifier::eq: return CmpInst::ICMP_EQ;
    case modifier::ne: return CmpInst::ICMP_NE;
    case modifier::lt: return s ? CmpInst::ICMP_SLT : CmpInst::ICMP_ULT;
    case modifier::le: return s ? CmpInst::ICMP_SLE : CmpInst::ICMP_ULE;
    case modifier::gt: return s ? CmpInst::ICMP_SGT : CmpInst::ICMP_UGT;
    case modifier::ge: return s ? CmpInst::ICMP_SGE : CmpInst::ICMP_UGE;
    case modifier::lo: return CmpInst::ICMP_ULT;
    case modifier::ls: return CmpInst::ICMP_ULE;
    case modifier::hi: return CmpInst::ICMP_UGT;
    case modifier::hs: return CmpInst::ICMP_UGE;
    default: return CmpInst::BAD_ICMP_PREDICATE;
  }
}

Value* emitter::emit_compare(const instruction& i) {
  if (i.op != opcode::setp) return nullptr;
  const type t = i.types[0];
  const modifier how = describe(i).compare;
  if (t == type::f32 || t == type::f64) {
    const bool ftz = i.has(modifier::ftz);
    const auto predicate = float_predicate(how);
    if (predicate == llvm::CmpInst::BAD_FCMP_PREDICATE) return nullptr;
    return at.CreateFCmp(predicate, flushed(get_float(i.sources[0], t), ftz), flushed(get_float(i.sources[1], t), ftz));
  }
  if (t == type::f16 || t == type::bf16) {
    const auto predicate = float_predicate(how);
    Value *const a = single_of_half(i.sources[0], t, i.has(modifier::ftz)), *const b = single_of_half(
                                                                                i.sources[1], t, i.has(modifier::ftz));
    if (predicate == llvm::CmpInst::BAD_FCMP_PREDICATE || a == nullptr) return nullptr;
    return at.CreateFCmp(predicate, a, b);
  }
  if (is_float(t)) return nullptr;
  const auto predicate = integer_predicate(how, is_signed(t));
  if (predicate == llvm::CmpInst::BAD_ICMP_PREDICATE) return nullptr;
  return at.CreateICmp(predicate, get(i.sources[0], bits_of(t)), get(i.sources[1], bits_of(t)));
}

}  // namespace hpe::ptx
