// f32 and f64 operations that round to nearest, and conversions. Scalar functions (scalar.h) execute most operations
// with other rounding.

#include <llvm/IR/MDBuilder.h>

#include "runtime/ptx/arithmetic/scalar.h"
#include "runtime/ptx/compiler/emitter.h"

namespace hpe::ptx {

using llvm::Value;

namespace {

bool rounds_to_integral(const instruction& i) {
  return i.modifiers.one_of(modifier::rni, modifier::rzi, modifier::rmi, modifier::rpi) != modifier::count;
}

// Returns whether emit_float emits code for the instruction. emit_float_conversion emits conversions to integers.
bool is_emitted(const instruction& i) {
  const type t = i.types[0];
  if (i.kind != kind::pure || (t != type::f32 && t != type::f64)) return false;
  if (i.modifiers.one_of(modifier::rz, modifier::rp, modifier::nan_, modifier::xorsign) != modifier::count)
    return false;
  // The compiler also emits code for f32 fma and mad that round down (.rm), because CUDA's expf uses them.
  const bool is_fused =
      i.op == opcode::fma || i.op == opcode::mad || i.op == opcode::product_less || i.op == opcode::less_product;
  if (i.has(modifier::rm) && (t != type::f32 || !is_fused)) return false;
  if (i.has(modifier::sat)) {
    if (t != type::f32) return false;
    if (i.op == opcode::cvt) return i.second_type() == type::f32 && !rounds_to_integral(i);
    if (!is_fused && i.op != opcode::add && i.op != opcode::sub && i.op != opcode::mul) return false;
  }
  const bool approximate = i.has(modifier::approx) || i.has(modifier::full);
  if (approximate && t == type::f64) return false;
  if (i.op == opcode::ex2) return approximate && t == type::f32;
  switch (i.op) {
    case opcode::add:
    case opcode::sub:
    case opcode::mul:
    case opcode::fma:
    case opcode::mad:
    case opcode::product_less:
    case opcode::less_product:
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
      return from == type::f32 || from == type::f64 || (from == type::f16 && t == type::f32);
    }
    default: return false;
  }
}

}  // namespace

// A conversion from f64 is not loose, because its NaN keeps sign and payload.
bool is_loose_operation(const instruction& i) {
  return i.types[0] == type::f32 && is_emitted(i) && !(i.op == opcode::cvt && i.second_type() == type::f64);
}

loose_floats::loose_floats(const std::vector<instruction>& code, std::size_t registers)
    : types_(registers, type::none) {
  // First assumes that each register that a loose operation writes is loose, until another write of the register
  // refutes the assumption.
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
          // mov copies a NaN unchanged, so its result may also be loose, if all other writes of the register allow this
          if (t == type::none && bits_of(i.types[0]) == bits_of(types_[i.sources[0].index])) {
            t = types_[i.sources[0].index];
            changed = true;
          }
          if (t == types_[i.sources[0].index]) continue;
        }
        if (moves && i.sources[0].what == operand::kind::immediate) {
          // the constant is not a NaN, so its bits are canonical
          if ((i.sources[0].value & 0x7fffffffU) <= 0x7f800000U) continue;
        }
        refused[d.index] = true;
        changed = true;
      }
    }
    // If a register is refused, a mov from this register becomes an ordinary write, so the search starts again.
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

Value* emitter::emit_conversion_to_float(const instruction& i) {
  const type t = i.types[0], from = i.second_type();
  const bool ftz = i.has(modifier::ftz);
  llvm::Type* const as = floats(bits_of(t));
  if (!is_float(from)) {
    Value* const whole = get(i.sources[0], bits_of(from));
    return is_signed(from) ? at.CreateSIToFP(whole, as) : at.CreateUIToFP(whole, as);
  }
  if (from == type::f16) {
    Value* value = single_of_half(i.sources[0], from, ftz);
    if (value == nullptr) value = at.CreateBitCast(at.CreateTrunc(call_scalar(i), ints(32)), as);
    return saturated(value, i.has(modifier::sat));
  }
  Value* value = get_float(i.sources[0], from);
  if (rounds_to_integral(i)) {
    value = to_integral(i, flushed(value, ftz));
  } else if (from != t) {
    // The f64 result contains the bits of the NaN, so the code must read the exact bits of the f32; with .ftz, it reads
    // the canonical bits.
    if (t == type::f64) {
      Value* bits = get(i.sources[0], 32);
      if (ftz) bits = canonical(bits, type::f32);
      value = at.CreateBitCast(bits, floats(32));
    }
    value = at.CreateFPCast(flushed(value, ftz), as);
    if (t == type::f32) {  // makes a NaN quiet, even if LLVM removes a conversion from f32 to f64 and back
      Value* const bits = at.CreateBitCast(value, ints(32));
      Value* const quiet = at.CreateSelect(at.CreateFCmpUNO(value, value), at.CreateOr(bits, 0x400000), bits);
      value = at.CreateBitCast(quiet, as);
    }
  }
  return saturated(flushed(value, ftz), i.has(modifier::sat));
}

Value* emitter::saturated(Value* value, bool is_wanted) {
  if (!is_wanted) return value;
  Value *const zero = llvm::ConstantFP::get(value->getType(), 0.0), *const one =
                                                                        llvm::ConstantFP::get(value->getType(), 1.0);
  value = at.CreateSelect(at.CreateFCmpOGT(value, zero), value, zero);  // the value for a NaN is 0
  return at.CreateSelect(at.CreateFCmpOGT(value, one), one, value);
}

// Computes a * b + c in f32, rounded down. The f64 product is exact, and so is the f64 sum together with its error
// (Knuth's TwoSum).
Value* emitter::fused_rounded_down(Value* a, Value* b, Value* c) {
  Value* const product = at.CreateFMul(at.CreateFPExt(a, floats(64)), at.CreateFPExt(b, floats(64)));
  Value* const addend = at.CreateFPExt(c, floats(64));
  Value* const sum = at.CreateFAdd(product, addend);
  Value* const part = at.CreateFSub(sum, product);
  Value* const error = at.CreateFAdd(at.CreateFSub(product, at.CreateFSub(sum, part)), at.CreateFSub(addend, part));
  Value* const nearest = at.CreateFPTrunc(sum, floats(32));
  Value* const back = at.CreateFPExt(nearest, floats(64));
  Value *const zero = llvm::ConstantFP::get(floats(64), 0.0), *const zero_bits = number(32, 0);
  Value* const is_above = at.CreateOr(at.CreateFCmpOGT(back, sum),
                                      at.CreateAnd(at.CreateFCmpOEQ(back, sum), at.CreateFCmpOLT(error, zero)));
  Value* const bits = at.CreateBitCast(nearest, ints(32));
  Value* const below =
      at.CreateSelect(at.CreateFCmpOEQ(back, zero), number(32, 0x80000001),
                      at.CreateSelect(at.CreateICmpSLT(bits, zero_bits), at.CreateAdd(bits, number(32, 1)),
                                      at.CreateSub(bits, number(32, 1))));
  // If the sum is zero, it is -0 unless both operands are +0.
  Value* const both = at.CreateOr(at.CreateBitCast(product, ints(64)), at.CreateBitCast(addend, ints(64)));
  Value* const of_zero = at.CreateSelect(at.CreateICmpEQ(both, number(64, 0)), zero_bits, number(32, 0x80000000));
  Value* const exact = at.CreateSelect(at.CreateFCmpOEQ(sum, zero), of_zero, bits);
  return at.CreateBitCast(at.CreateSelect(is_above, below, exact), floats(32));
}

// Emits the computation of power_of_two in scalar_float.cpp.
Value* emitter::power_of_two(Value* x) {
  const auto number_of = [&](double value) { return llvm::ConstantFP::get(x->getType(), value); };
  const auto limit = [&](double most, bool is_above) {
    Value* const beyond = is_above ? at.CreateFCmpOGT(x, number_of(most)) : at.CreateFCmpOLT(x, number_of(most));
    x = at.CreateSelect(beyond, number_of(most), x);
  };
  limit(exp2_limit, true);
  limit(-exp2_limit, false);
  Value* const rounded = at.CreateFAdd(x, number_of(exp2_rounder));
  Value* const rest = at.CreateFSub(x, at.CreateFSub(rounded, number_of(exp2_rounder)));
  constexpr std::size_t count = std::size(exp2_coefficients);
  Value* sum = number_of(exp2_coefficients[count - 1]);
  for (std::size_t n = count - 1; n-- > 0;)
    sum = at.CreateIntrinsic(llvm::Intrinsic::fma, {x->getType()}, {sum, rest, number_of(exp2_coefficients[n])});
  Value* const exponent = at.CreateShl(at.CreateAdd(at.CreateBitCast(rounded, ints(64)), number(64, 1023)), 52);
  return at.CreateFMul(sum, at.CreateBitCast(exponent, x->getType()));
}

// Emits code that computes in double and rounds once, as the scalar functions do.
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
      if (i.has(modifier::approx)) {  // the computation of quotient_by_reciprocal in scalar_float.cpp
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
    case opcode::ex2: result = power_of_two(precise(0)); break;
    default: return nullptr;
  }
  return flushed(at.CreateFPTrunc(result, floats(32)), ftz);
}

// min and max. If one operand is a NaN, the result is the other operand. Of the zeros -0 and +0, min returns -0 and max
// returns +0.
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
  std::vector<Value*> nans{s[0]};  // the operands in order of precedence, if they are NaNs
  if (s.size() == 2) nans = {s[1], s[0]};
  if (s.size() == 3) nans = {s[1], s[2], s[0]};
  switch (i.op) {
    case opcode::add: result = at.CreateFAdd(s[0], s[1]); break;
    case opcode::sub: result = at.CreateFSub(s[0], s[1]); break;
    case opcode::mul: result = at.CreateFMul(s[0], s[1]); break;
    case opcode::fma:
    case opcode::mad:
      result = i.has(modifier::rm) ? fused_rounded_down(s[0], s[1], s[2])
                                   : at.CreateIntrinsic(llvm::Intrinsic::fma, {s[0]->getType()}, s);
      break;
    case opcode::product_less:
      result = at.CreateIntrinsic(llvm::Intrinsic::fma, {s[0]->getType()}, {s[0], s[1], at.CreateFNeg(s[2])});
      break;
    case opcode::less_product:
      result = at.CreateIntrinsic(llvm::Intrinsic::fma, {s[0]->getType()}, {at.CreateFNeg(s[0]), s[1], s[2]});
      break;
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
  return saturated(flushed(with_exact_nan(result, nans), ftz), i.has(modifier::sat));
}

Value* emitter::to_integral(const instruction& i, Value* value) {
  if (i.has(modifier::rmi)) return at.CreateUnaryIntrinsic(llvm::Intrinsic::floor, value);
  if (i.has(modifier::rpi)) return at.CreateUnaryIntrinsic(llvm::Intrinsic::ceil, value);
  if (i.has(modifier::rni)) return at.CreateUnaryIntrinsic(llvm::Intrinsic::roundeven, value);
  return at.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, value);
}

Value* emitter::emit_float_conversion(const instruction& i) {
  const type to = i.types[0], from = i.second_type();
  if (from != type::f32 && from != type::f64 && from != type::f16 && from != type::bf16) return nullptr;
  const bool ftz = i.has(modifier::ftz);
  Value* value =
      bits_of(from) == 16 ? single_of_half(i.sources[0], from, ftz) : flushed(get_float(i.sources[0], from), ftz);
  if (value == nullptr) return nullptr;
  if (!i.has(modifier::rzi)) value = to_integral(i, value);
  llvm::Type* const bits = ints(bits_of(to));
  Value* const whole = at.CreateIntrinsic(is_signed(to) ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat,
                                          {bits, value->getType()}, {value});
  Value* result = whole;
  if (bits_of(to) == 64 || from == type::f64)  // for a NaN, only the top bit is set (scalar_convert.cpp)
    result = at.CreateSelect(at.CreateFCmpUNO(value, value),
                             llvm::ConstantInt::get(bits, std::uint64_t{1} << (bits_of(to) - 1)), whole);
  return is_signed(to) ? at.CreateSExt(result, ints(64)) : at.CreateZExt(result, ints(64));
}

}  // namespace hpe::ptx
