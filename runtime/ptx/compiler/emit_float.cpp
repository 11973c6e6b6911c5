// Floating point: f32 and f64 rounded to nearest, and conversions. Scalar functions execute other roundings and halves.

#include <llvm/IR/MDBuilder.h>

#include "runtime/ptx/compiler/emitter.h"

namespace hpe::ptx {

using llvm::Value;

namespace {

bool rounds_to_integral(const instruction& i) {
  return i.modifiers.one_of(modifier::rni, modifier::rzi, modifier::rmi, modifier::rpi) != modifier::count;
}

// Whether there is code for an instruction here; for conversions to integers see emit_float_conversion.
bool is_emitted(const instruction& i) {
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
    case opcode::neg:
    case opcode::abs:
    case opcode::rcp:
    case opcode::rsqrt:
    case opcode::sqrt: return true;
    case opcode::cvt: {
      if (i.modifiers.one_of(modifier::relu, modifier::satfinite) != modifier::count) return false;
      const type from = i.second_type();
      if (rounds_to_integral(i)) return from == t;
      if (!is_float(from)) return bits_of(from) >= 16;
      return from == type::f32 || from == type::f64;
    }
    default: return false;
  }
}

}  // namespace

// Not a conversion from f64, whose NaN keeps sign and payload.
bool is_loose_operation(const instruction& i) {
  return i.types[0] == type::f32 && is_emitted(i) && !(i.op == opcode::cvt && i.second_type() == type::f64);
}

loose_floats::loose_floats(const std::vector<instruction>& code, std::size_t registers)
    : types_(registers, type::none) {
  // Optimistic: a register that such an operation writes is loose, unless another write of the register refutes it.
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
          // passes a NaN on unchanged, if all other writes allow it
          if (t == type::none && bits_of(i.types[0]) == bits_of(types_[i.sources[0].index])) {
            t = types_[i.sources[0].index];
            changed = true;
          }
          if (t == types_[i.sources[0].index]) continue;
        }
        if (moves && i.sources[0].what == operand::kind::immediate) {
          if ((i.sources[0].value & 0x7fffffffU) <= 0x7f800000U) continue;  // no NaN: reads the same, canonical or not
        }
        refused[d.index] = true;
        changed = true;
      }
    }
    // A refusal may turn movs from that register into plain writes, so the search repeats.
    for (std::size_t r = 0; r < registers; ++r)
      if (refused[r]) types_[r] = type::none;
  }
}

Value* emitter::flushed(Value* value, bool ftz) {
  if (!ftz || !value->getType()->getScalarType()->isFloatTy()) return value;
  Value* const bits = at.CreateBitCast(value, ints(32));
  Value* const tiny = at.CreateICmpEQ(at.CreateAnd(bits, 0x7f800000), number(32, 0));
  return at.CreateBitCast(at.CreateSelect(tiny, at.CreateAnd(bits, 0x80000000), bits), value->getType());
}

// The NaN result of an f64 operation is an operand that is a NaN, made quiet (scalar_float.cpp). Neither LLVM nor the
// processor defines which operand, so it is selected here. Branch weights mark the case as rare, so that loops of
// arithmetic branch around it.
Value* emitter::with_exact_nan(Value* result, llvm::ArrayRef<Value*> in_order) {
  if (!result->getType()->getScalarType()->isDoubleTy()) return result;
  llvm::Type* const bits = ints(64);
  Value* chosen = llvm::ConstantInt::get(bits, 0xfff8000000000000);
  for (Value* const operand : llvm::reverse(in_order)) {
    Value* const quiet = at.CreateOr(at.CreateBitCast(operand, bits), std::uint64_t{1} << 51);
    chosen = at.CreateSelect(at.CreateFCmpUNO(operand, operand), quiet, chosen);
  }
  Value* const exact =
      at.CreateSelect(at.CreateFCmpUNO(result, result), at.CreateBitCast(chosen, result->getType()), result);
  if (auto* const choice = llvm::dyn_cast<llvm::SelectInst>(exact))
    choice->setMetadata(llvm::LLVMContext::MD_prof, llvm::MDBuilder(at.getContext()).createBranchWeights(1, 1 << 20));
  return exact;
}

Value* emitter::emit_conversion_to_float(const instruction& i) {
  const type t = i.types[0], from = i.second_type();
  const bool ftz = i.has(modifier::ftz);
  llvm::Type* const as = floats(bits_of(t));
  if (!is_float(from)) {
    Value* const whole = get(i.sources[0], bits_of(from));
    return is_signed(from) ? at.CreateSIToFP(whole, as) : at.CreateUIToFP(whole, as);
  }
  Value* value = get_float(i.sources[0], from);
  if (rounds_to_integral(i)) {
    value = to_integral(i, flushed(value, ftz));
  } else if (from != t) {
    // The NaN of the f32 shows in the f64, so it must be the exact one; with .ftz it is canonical.
    if (t == type::f64) {
      Value* bits = get(i.sources[0], 32);
      if (ftz) bits = canonical(bits, type::f32);
      value = at.CreateBitCast(bits, floats(32));
    }
    value = at.CreateFPCast(flushed(value, ftz), as);
    if (t == type::f32) {  // quiet, even if LLVM finds that the f64 was converted from an f32
      Value* const bits = at.CreateBitCast(value, ints(32));
      Value* const quiet = at.CreateSelect(at.CreateFCmpUNO(value, value), at.CreateOr(bits, 0x400000), bits);
      value = at.CreateBitCast(quiet, as);
    }
  }
  return flushed(value, ftz);
}

// Like the scalar functions: computes in double and rounds once.
Value* emitter::emit_approximate(const instruction& i) {
  const bool ftz = i.has(modifier::ftz);
  const auto precise = [&](std::size_t n) {
    return at.CreateFPExt(flushed(get_float(i.sources[n], type::f32), ftz), floats(64));
  };
  const auto root = [&](Value* of) { return at.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, of); };
  Value* const one = llvm::ConstantFP::get(floats(64), 1.0);
  Value* result = nullptr;
  switch (i.op) {
    case opcode::div: {
      Value *const a = precise(0), *b = precise(1);
      if (i.has(modifier::approx)) {  // quotient_by_reciprocal of scalar_float.cpp
        Value* const infinity = llvm::ConstantFP::getInfinity(floats(64));
        Value* const large = at.CreateFCmpOGT(at.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, b),
                                              llvm::ConstantFP::get(floats(64), 0x1p126));
        b = at.CreateSelect(large, at.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, infinity, b), b);
      }
      result = at.CreateFDiv(a, b);
      break;
    }
    case opcode::rcp: result = at.CreateFDiv(one, precise(0)); break;
    case opcode::sqrt: result = root(precise(0)); break;
    case opcode::rsqrt: result = at.CreateFDiv(one, root(precise(0))); break;
    default: return nullptr;
  }
  return flushed(at.CreateFPTrunc(result, floats(32)), ftz);
}

// min and max: of a NaN and a number, the number; of two zeros, the one with the right sign.
Value* emitter::emit_extreme(bool minimum, Value* a, Value* b) {
  llvm::Type* const bits = ints(a->getType()->getScalarSizeInBits());
  Value *const x = at.CreateBitCast(a, bits), *const y = at.CreateBitCast(b, bits);
  Value* const equal = at.CreateBitCast(minimum ? at.CreateOr(x, y) : at.CreateAnd(x, y), a->getType());
  Value* const first = at.CreateOr(minimum ? at.CreateFCmpOLT(a, b) : at.CreateFCmpOGT(a, b), at.CreateFCmpUNO(b, b));
  return at.CreateSelect(at.CreateFCmpOEQ(a, b), equal, at.CreateSelect(first, a, b));
}

Value* emitter::emit_float(const instruction& i) {
  if (!is_emitted(i)) return nullptr;
  const type t = i.types[0];
  const bool ftz = i.has(modifier::ftz);
  if (i.op == opcode::cvt) return emit_conversion_to_float(i);
  if (i.has(modifier::approx) || i.has(modifier::full)) return emit_approximate(i);
  std::vector<Value*> s;
  for (const operand& o : i.sources) s.push_back(flushed(get_float(o, t), ftz));
  Value* result = nullptr;
  std::vector<Value*> nans{s[0]};  // in order of precedence
  if (s.size() == 2) nans = {s[1], s[0]};
  if (s.size() == 3) nans = {s[1], s[2], s[0]};
  switch (i.op) {
    case opcode::add: result = at.CreateFAdd(s[0], s[1]); break;
    case opcode::sub: result = at.CreateFSub(s[0], s[1]); break;
    case opcode::mul: result = at.CreateFMul(s[0], s[1]); break;
    case opcode::fma:
    case opcode::mad: result = at.CreateIntrinsic(llvm::Intrinsic::fma, {s[0]->getType()}, s); break;
    case opcode::div:
      result = at.CreateFDiv(s[0], s[1]);
      nans = {s[0], s[1]};
      break;
    case opcode::rcp: result = at.CreateFDiv(llvm::ConstantFP::get(s[0]->getType(), 1.0), s[0]); break;
    case opcode::sqrt: result = at.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, s[0]); break;
    case opcode::neg: result = at.CreateFNeg(s[0]); break;
    case opcode::abs: result = at.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, s[0]); break;
    case opcode::min:
    case opcode::max: result = emit_extreme(i.op == opcode::min, s[0], s[1]); break;
    default: return nullptr;
  }
  return flushed(with_exact_nan(result, nans), ftz);
}

Value* emitter::to_integral(const instruction& i, Value* value) {
  if (i.has(modifier::rmi)) return at.CreateUnaryIntrinsic(llvm::Intrinsic::floor, value);
  if (i.has(modifier::rpi)) return at.CreateUnaryIntrinsic(llvm::Intrinsic::ceil, value);
  if (i.has(modifier::rni)) return at.CreateUnaryIntrinsic(llvm::Intrinsic::roundeven, value);
  return at.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, value);
}

Value* emitter::emit_float_conversion(const instruction& i) {
  const type to = i.types[0], from = i.second_type();
  if (from != type::f32 && from != type::f64) return nullptr;
  Value* value = flushed(get_float(i.sources[0], from), i.has(modifier::ftz));
  if (!i.has(modifier::rzi)) value = to_integral(i, value);
  llvm::Type* const bits = ints(bits_of(to));
  Value* const whole = at.CreateIntrinsic(is_signed(to) ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat,
                                          {bits, value->getType()}, {value});
  Value* result = whole;
  if (bits_of(to) == 64 || from == type::f64)  // as in scalar_convert.cpp
    result = at.CreateSelect(at.CreateFCmpUNO(value, value),
                             llvm::ConstantInt::get(bits, std::uint64_t{1} << (bits_of(to) - 1)), whole);
  return is_signed(to) ? at.CreateSExt(result, ints(64)) : at.CreateZExt(result, ints(64));
}

}  // namespace hpe::ptx
