// f16 and bf16 arithmetic, scalar and packed. As in scalar_half.cpp, the results are correctly rounded. f32 has more
// than twice as many digits as f16 and bf16. Therefore the emitted code computes the sum of two f16 or bf16 values, and
// the product of two f16 values, in f32: rounded to 16 bits, the f32 result is equal to the rounded exact result. The
// code rounds the sum of a product and a value to odd: in f32 for f16, whose products are exact in f32, otherwise in
// f64. It computes products of bf16 in f64, and rounds them to odd when it converts them to f32.

#include "runtime/ptx/arithmetic/scalar.h"
#include "runtime/ptx/compiler/emitter.h"

namespace hpe::ptx {

using llvm::Value;

namespace {

bool is_pair(type t) { return t == type::f16x2 || t == type::bf16x2; }
bool is_half(type t) { return t == type::f16 || t == type::f16x2; }
bool is_brain(type t) { return t == type::bf16 || t == type::bf16x2; }

constexpr std::uint64_t half_nan = 0x7fff;  // the canonical NaN of both formats

/// Emits code for 16-bit numbers, for one value or for a vector of any length.
class half_code {
 public:
  half_code(llvm::IRBuilder<>& at, bool is_brain, bool has_conversions)
      : at_(at), is_brain_(is_brain), has_conversions_(has_conversions) {}

  [[nodiscard]] bool is_possible() const { return is_brain_ || has_conversions_; }

  /// Returns `element`, or a vector of `element` of the same length as `value`.
  static llvm::Type* like(Value* value, llvm::Type* element) {
    const auto* const vector = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
    return vector == nullptr ? element : llvm::FixedVectorType::get(element, vector->getNumElements());
  }
  llvm::Constant* number(Value* as, std::uint64_t value) { return llvm::ConstantInt::get(as->getType(), value); }

  Value* is_nan(Value* bits) {
    return at_.CreateICmpUGT(at_.CreateAnd(bits, number(bits, 0x7fff)), number(bits, is_brain_ ? 0x7f80 : 0x7c00));
  }
  /// Replaces a subnormal f16 by a zero.
  Value* flushed(Value* bits, bool ftz) {
    if (!ftz || is_brain_) return bits;
    Value* const tiny = at_.CreateICmpEQ(at_.CreateAnd(bits, number(bits, 0x7c00)), number(bits, 0));
    return at_.CreateSelect(tiny, at_.CreateAnd(bits, number(bits, 0x8000)), bits);
  }

  Value* to_single(Value* bits) {
    if (!is_brain_) return at_.CreateFPExt(as_half(bits), like(bits, at_.getFloatTy()));
    Value* const wide = at_.CreateShl(at_.CreateZExt(bits, like(bits, at_.getInt32Ty())), 16);
    return at_.CreateBitCast(wide, like(bits, at_.getFloatTy()));
  }

  /// Rounds an f32 to the nearest value of the format (ties to even). Any NaN becomes the canonical NaN, which is the
  /// same in f16 and bf16.
  Value* of_single(Value* value) {
    llvm::Type* const i16 = like(value, at_.getInt16Ty());
    Value* rounded = nullptr;
    if (is_brain_) {
      Value* const bits = at_.CreateBitCast(value, like(value, at_.getInt32Ty()));
      Value* const odd = at_.CreateAnd(at_.CreateLShr(bits, 16), 1);
      rounded = at_.CreateTrunc(at_.CreateLShr(at_.CreateAdd(at_.CreateAdd(bits, number(bits, 0x7fff)), odd), 16), i16);
    } else {
      rounded = at_.CreateBitCast(at_.CreateFPTrunc(value, like(value, at_.getHalfTy())), i16);
    }
    return at_.CreateSelect(at_.CreateFCmpUNO(value, value), number(rounded, half_nan), rounded);
  }

  /// Converts an f64 to f32, rounded to odd.
  Value* odd_single(Value* value) {
    llvm::Type* const i32 = like(value, at_.getInt32Ty());
    Value* const near = at_.CreateFPTrunc(value, like(value, at_.getFloatTy()));
    Value* const back = at_.CreateFPExt(near, value->getType());
    Value* const bits = at_.CreateBitCast(near, i32);
    const auto size = [&](Value* of) { return at_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, of); };
    Value* const step =
        at_.CreateSelect(at_.CreateFCmpOGT(size(value), size(back)), number(bits, 1), number(bits, ~std::uint64_t{0}));
    Value* const is_exact_or_odd = at_.CreateOr(
        at_.CreateFCmpUEQ(value, back), at_.CreateICmpNE(at_.CreateAnd(bits, number(bits, 1)), number(bits, 0)));
    return at_.CreateBitCast(at_.CreateSelect(is_exact_or_odd, bits, at_.CreateAdd(bits, step)), near->getType());
  }

  /// Computes a + b in the type of a and b, rounded to odd (add_to_odd of float_format.cpp).
  Value* odd_sum(Value* a, Value* b) {
    Value* const sum = at_.CreateFAdd(a, b);
    Value* const part = at_.CreateFSub(sum, a);
    Value* const error = at_.CreateFAdd(at_.CreateFSub(a, at_.CreateFSub(sum, part)), at_.CreateFSub(b, part));
    Value* const bits = at_.CreateBitCast(sum, like(sum, at_.getIntNTy(sum->getType()->getScalarSizeInBits())));
    Value* const zero = llvm::ConstantFP::get(sum->getType(), 0.0);
    Value* const grows = at_.CreateICmpEQ(at_.CreateZExt(at_.CreateFCmpOGT(error, zero), bits->getType()),
                                          at_.CreateZExt(at_.CreateFCmpOGT(sum, zero), bits->getType()));
    Value* const step = at_.CreateSelect(grows, number(bits, 1), number(bits, ~std::uint64_t{0}));
    // If the sum is infinite, the error is a NaN, and the result is the sum.
    Value* const stays = at_.CreateOr(at_.CreateFCmpUEQ(error, zero),
                                      at_.CreateICmpNE(at_.CreateAnd(bits, number(bits, 1)), number(bits, 0)));
    return at_.CreateBitCast(at_.CreateSelect(stays, bits, at_.CreateAdd(bits, step)), sum->getType());
  }

  /// product() and the following functions return an f32 that rounds to the same 16-bit value as the exact result.
  Value* product(Value* a, Value* b) {
    if (!is_brain_) return at_.CreateFMul(to_single(a), to_single(b));
    return odd_single(at_.CreateFMul(to_double(a), to_double(b)));
  }
  Value* fused(Value* a, Value* b, Value* c) {
    if (!is_brain_) return odd_sum(at_.CreateFMul(to_single(a), to_single(b)), to_single(c));
    return odd_single(odd_sum(at_.CreateFMul(to_double(a), to_double(b)), to_double(c)));
  }

 private:
  Value* as_half(Value* bits) { return at_.CreateBitCast(bits, like(bits, at_.getHalfTy())); }
  Value* to_double(Value* bits) { return at_.CreateFPExt(to_single(bits), like(bits, at_.getDoubleTy())); }

  llvm::IRBuilder<>& at_;
  const bool is_brain_, has_conversions_;
};

}  // namespace

Value* emitter::limited(const instruction& i, Value* value) {
  value = saturated(value, i.has(modifier::sat));
  if (!i.has(modifier::relu)) return value;
  return at.CreateSelect(at.CreateFCmpOLE(value, llvm::Constant::getNullValue(value->getType())),
                         llvm::Constant::getNullValue(value->getType()), value);
}

Value* emitter::emit_half(const instruction& i) {
  const type t = i.types[0];
  if (!is_half(t) && !is_brain(t)) return nullptr;
  half_code code(at, is_brain(t), shared_.has_half_conversions);
  if (!code.is_possible() || i.has(modifier::xorsign) ||
      i.modifiers.one_of(modifier::rz, modifier::rm, modifier::rp) != modifier::count)
    return nullptr;
  const bool ftz = i.has(modifier::ftz);
  // Both halves of packed pairs are elements of one vector.
  const unsigned count = (is_wide() ? lane_count() : 1) * (is_pair(t) ? 2 : 1);
  llvm::Type* parts = at.getInt16Ty();
  if (count > 1) parts = llvm::FixedVectorType::get(parts, count);
  std::vector<Value*> s;
  for (const operand& o : i.sources) s.push_back(code.flushed(at.CreateBitCast(get(o, bits_of(t)), parts), ftz));
  const auto result = [&](Value* bits) { return at.CreateBitCast(bits, ints(bits_of(t))); };
  const auto rounded = [&](Value* value) { return result(code.flushed(code.of_single(limited(i, value)), ftz)); };
  const auto or_nan = [&](Value* is_nan, Value* bits) {
    return at.CreateSelect(is_nan, code.number(bits, half_nan), bits);
  };
  switch (i.op) {
    case opcode::add: return rounded(at.CreateFAdd(code.to_single(s[0]), code.to_single(s[1])));
    case opcode::sub: return rounded(at.CreateFSub(code.to_single(s[0]), code.to_single(s[1])));
    case opcode::mul: return rounded(code.product(s[0], s[1]));
    case opcode::fma: return rounded(code.fused(s[0], s[1], s[2]));
    case opcode::neg: return result(or_nan(code.is_nan(s[0]), at.CreateXor(s[0], code.number(s[0], 0x8000))));
    case opcode::abs: return result(or_nan(code.is_nan(s[0]), at.CreateAnd(s[0], code.number(s[0], 0x7fff))));
    case opcode::min:
    case opcode::max: {
      const bool minimum = i.op == opcode::min;
      Value *const x = code.to_single(s[0]), *const y = code.to_single(s[1]);
      Value *const x_nan = at.CreateFCmpUNO(x, x), *const y_nan = at.CreateFCmpUNO(y, y);
      // for two zeros, min and max combine the signs
      Value* const equal = minimum ? at.CreateOr(s[0], s[1]) : at.CreateAnd(s[0], s[1]);
      Value* bits = at.CreateSelect(minimum ? at.CreateFCmpOLT(x, y) : at.CreateFCmpOGT(x, y), s[0], s[1]);
      bits = at.CreateSelect(at.CreateFCmpOEQ(x, y), equal, bits);
      bits = at.CreateSelect(x_nan, s[1], at.CreateSelect(y_nan, s[0], bits));
      bits = or_nan(i.has(modifier::nan_) ? at.CreateOr(x_nan, y_nan) : at.CreateAnd(x_nan, y_nan), bits);
      if (i.has(modifier::relu))
        bits = at.CreateSelect(at.CreateICmpSLT(bits, code.number(bits, 0)), code.number(bits, 0), bits);
      return result(bits);
    }
    default: return nullptr;
  }
}

Value* emitter::single_of_half(const operand& o, type t, bool ftz) {
  half_code code(at, is_brain(t), shared_.has_half_conversions);
  return code.is_possible() ? code.to_single(code.flushed(get(o, 16), ftz)) : nullptr;
}

// Conversions to f16 and bf16, rounded to nearest, and to packed pairs of these types.
Value* emitter::emit_conversion_to_half(const instruction& i) {
  const type to = i.types[0], from = i.second_type();
  half_code code(at, is_brain(to), shared_.has_half_conversions);
  if (!code.is_possible() || i.has(modifier::ftz) || i.has(modifier::satfinite)) return nullptr;
  const auto rounded = [&](Value* value) { return code.of_single(limited(i, value)); };
  if (from == to && !is_pair(to)) {
    if (i.modifiers.one_of(modifier::rni, modifier::rzi, modifier::rmi, modifier::rpi) == modifier::count)
      return nullptr;
    Value* const value = single_of_half(i.sources[0], from, false);
    return value == nullptr ? nullptr : rounded(to_integral(i, value));
  }
  if (!i.has(modifier::rn)) return nullptr;
  if (is_pair(to)) {
    if (from != type::f32) return nullptr;
    Value *const high = at.CreateZExt(rounded(get_float(i.sources[0], from)), ints(32)), *const low = at.CreateZExt(
                                                                                             rounded(get_float(
                                                                                                 i.sources[1], from)),
                                                                                             ints(32));
    return at.CreateOr(at.CreateShl(high, 16), low);
  }
  if (from == type::f32) return rounded(get_float(i.sources[0], from));
  if (is_float(from) || bits_of(from) < 16 || bits_of(from) > 32) return nullptr;
  Value* const whole = get(i.sources[0], bits_of(from));
  Value* const exact = is_signed(from) ? at.CreateSIToFP(whole, floats(64)) : at.CreateUIToFP(whole, floats(64));
  return rounded(code.odd_single(exact));
}

}  // namespace hpe::ptx
