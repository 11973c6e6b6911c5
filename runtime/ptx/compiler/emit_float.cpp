// Floating point: f32 and f64 to the nearest, comparisons, conversions. Other roundings and halves are left to the
// scalar functions.

#include "runtime/ptx/compiler/emitter.h"
#include "runtime/ptx/scalar.h"

namespace hpe::ptx {

using llvm::Value;

bool is_loose_operation(const instruction& i) {
  const type t = i.types[0];
  if (i.kind != kind::pure || (t != type::f32 && t != type::f64)) return false;
  if (i.modifiers.one_of(modifier::rz, modifier::rm, modifier::rp, modifier::sat, modifier::nan_, modifier::xorsign) !=
      modifier::count)
    return false;
  const bool approximate = i.has(modifier::approx) || i.has(modifier::full);
  if (approximate && t == type::f64) return false;
  switch (i.op) {
    case opcode::add:
    case opcode::sub:
    case opcode::mul:
    case opcode::fma:
    case opcode::mad:
    case opcode::min:
    case opcode::max:
    case opcode::div:
    case opcode::rcp:
    case opcode::rsqrt:
    case opcode::sqrt: return true;
    case opcode::cvt: {
      if (i.modifiers.one_of(modifier::rni, modifier::rzi, modifier::rmi, modifier::rpi, modifier::relu,
                             modifier::satfinite) != modifier::count)
        return false;
      const type from = i.second_type();
      if (!is_float(from)) return bits_of(from) >= 16;
      return from == type::f32 || from == type::f64;
    }
    default: return false;
  }
}

loose_floats::loose_floats(const std::vector<instruction>& code, std::size_t registers)
    : types_(registers, type::none) {
  // Optimistic: whoever is written by such an operation, until another write of the register says no.
  std::vector<bool> refused(registers);
  for (const instruction& i : code)
    if (is_loose_operation(i) && i.results[0].is_register()) {
      type& t = types_[i.results[0].index];
      if (t != type::none && t != i.types[0]) refused[i.results[0].index] = true;
      t = i.types[0];
    }
  for (bool changed = true; changed;) {
    changed = false;
    for (const instruction& i : code) {
      const bool moves = i.op == opcode::mov && i.kind == kind::pure;
      for (const operand& d : i.results) {
        if (!d.is_register() || refused[d.index] || is_loose_operation(i)) continue;
        type& t = types_[d.index];
        if (moves && i.sources[0].is_register() && !refused[i.sources[0].index] &&
            types_[i.sources[0].index] != type::none) {
          // takes the NaN over as it is, if all other writes allow it
          if (t == type::none && bits_of(i.types[0]) == bits_of(types_[i.sources[0].index])) {
            t = types_[i.sources[0].index];
            changed = true;
          }
          if (t == types_[i.sources[0].index]) continue;
        }
        if (moves && i.sources[0].what == operand::kind::immediate) {
          const std::uint64_t bits = i.sources[0].value;
          const bool nan = t == type::f64 ? (bits & ~(std::uint64_t{1} << 63)) > 0x7ff0000000000000U
                                          : (bits & 0x7fffffffU) > 0x7f800000U;
          if (!nan) continue;  // reads the same, canonical or not
        }
        refused[d.index] = true;
        changed = true;
      }
    }
    // A refusal may turn movers of that register into plain writers.
    for (std::size_t r = 0; r < registers; ++r)
      if (refused[r]) types_[r] = type::none;
  }
}

Value* emitter::flushed(Value* value, bool ftz) {
  if (!ftz || !value->getType()->isFloatTy()) return value;
  Value* const bits = at.CreateBitCast(value, at.getInt32Ty());
  Value* const tiny = at.CreateICmpEQ(at.CreateAnd(bits, 0x7f800000), at.getInt32(0));
  return at.CreateBitCast(at.CreateSelect(tiny, at.CreateAnd(bits, 0x80000000), bits), value->getType());
}

Value* emitter::emit_float(const instruction& i) {
  if (!is_loose_operation(i)) return nullptr;
  const type t = i.types[0];
  const bool ftz = i.has(modifier::ftz);
  if (i.op == opcode::cvt) {
    const type from = i.second_type();
    llvm::Type* const as = t == type::f32 ? at.getFloatTy() : at.getDoubleTy();
    if (is_float(from)) return flushed(at.CreateFPCast(flushed(get_float(i.sources[0], from), ftz), as), ftz);
    Value* const whole = get(i.sources[0], bits_of(from));
    return is_signed(from) ? at.CreateSIToFP(whole, as) : at.CreateUIToFP(whole, as);
  }
  const auto source = [&](std::size_t n) { return flushed(get_float(i.sources[n], t), ftz); };
  if (i.has(modifier::approx) || i.has(modifier::full)) {
    // As the scalar functions: in double, rounded once more.
    const auto precise = [&](std::size_t n) { return at.CreateFPExt(source(n), at.getDoubleTy()); };
    Value* const one = llvm::ConstantFP::get(at.getDoubleTy(), 1.0);
    Value* result = nullptr;
    switch (i.op) {
      case opcode::div: result = at.CreateFDiv(precise(0), precise(1)); break;
      case opcode::rcp: result = at.CreateFDiv(one, precise(0)); break;
      case opcode::sqrt: result = at.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, precise(0)); break;
      case opcode::rsqrt:
        result = at.CreateFDiv(one, at.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, precise(0)));
        break;
      default: return nullptr;
    }
    return flushed(at.CreateFPTrunc(result, at.getFloatTy()), ftz);
  }
  Value* result = nullptr;
  switch (i.op) {
    case opcode::add: result = at.CreateFAdd(source(0), source(1)); break;
    case opcode::sub: result = at.CreateFSub(source(0), source(1)); break;
    case opcode::mul: result = at.CreateFMul(source(0), source(1)); break;
    case opcode::fma:
    case opcode::mad: {
      Value *const a = source(0), *const b = source(1), *const c = source(2);
      result = at.CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()}, {a, b, c});
      break;
    }
    case opcode::div: result = at.CreateFDiv(source(0), source(1)); break;
    case opcode::rcp: {
      Value* const a = source(0);
      result = at.CreateFDiv(llvm::ConstantFP::get(a->getType(), 1.0), a);
      break;
    }
    case opcode::sqrt: result = at.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, source(0)); break;
    case opcode::min:
    case opcode::max: {
      // The number where one is a NaN; of equal ones, which may be zeros, that with the right sign.
      Value *const a = source(0), *const b = source(1);
      llvm::Type* const bits = at.getIntNTy(bits_of(t));
      Value *const x = at.CreateBitCast(a, bits), *const y = at.CreateBitCast(b, bits);
      const bool minimum = i.op == opcode::min;
      Value* const equal = at.CreateBitCast(minimum ? at.CreateOr(x, y) : at.CreateAnd(x, y), a->getType());
      Value* const first =
          at.CreateOr(minimum ? at.CreateFCmpOLT(a, b) : at.CreateFCmpOGT(a, b), at.CreateFCmpUNO(b, b));
      return at.CreateSelect(at.CreateFCmpOEQ(a, b), equal, at.CreateSelect(first, a, b));
    }
    default: return nullptr;
  }
  return flushed(result, ftz);
}

Value* emitter::emit_float_conversion(const instruction& i) {
  const type to = i.types[0], from = i.second_type();
  if (from != type::f32 && from != type::f64) return nullptr;
  Value* value = flushed(get_float(i.sources[0], from), i.has(modifier::ftz));
  if (i.has(modifier::rmi)) value = at.CreateUnaryIntrinsic(llvm::Intrinsic::floor, value);
  if (i.has(modifier::rpi)) value = at.CreateUnaryIntrinsic(llvm::Intrinsic::ceil, value);
  if (i.has(modifier::rni)) value = at.CreateUnaryIntrinsic(llvm::Intrinsic::roundeven, value);
  llvm::Type* const bits = at.getIntNTy(bits_of(to));
  Value* const whole = at.CreateIntrinsic(is_signed(to) ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat,
                                          {bits, value->getType()}, {value});
  Value* result = whole;
  const bool wide = bits_of(to) == 64 || from == type::f64;
  if (wide && bits_of(to) >= 32)  // as scalar_convert.cpp
    result = at.CreateSelect(at.CreateFCmpUNO(value, value),
                             llvm::ConstantInt::get(bits, std::uint64_t{1} << (bits_of(to) - 1)), whole);
  return is_signed(to) ? at.CreateSExt(result, at.getInt64Ty()) : at.CreateZExt(result, at.getInt64Ty());
}

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

}  // namespace

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
  if (is_float(t)) return nullptr;
  const auto predicate = integer_predicate(how, is_signed(t));
  if (predicate == llvm::CmpInst::BAD_ICMP_PREDICATE) return nullptr;
  return at.CreateICmp(predicate, get(i.sources[0], bits_of(t)), get(i.sources[1], bits_of(t)));
}

}  // namespace hpe::ptx
