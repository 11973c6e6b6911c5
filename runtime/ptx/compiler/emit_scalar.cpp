// Pure instructions on integers and bits. Scalar functions (scalar.h) execute rare instructions.

#include <bit>

#include "runtime/ptx/arithmetic/scalar.h"
#include "runtime/ptx/compiler/emitter.h"

namespace hpe::ptx {

using llvm::Value;

void emitter::emit_pure(const instruction& i) {
  const operand& d = i.results[0];
  if (!d.is_register()) return;
  // The code reads the guard before it writes the result, because both may be the same register.
  Value* const before = i.guard.is_register() ? get_raw(d.index) : nullptr;
  Value* const holds = i.guard.is_register() ? condition(i.guard) : nullptr;
  if (i.op == opcode::mov && i.sources[0].is_register() && loose_.of(d.index) != type::none &&
      loose_.of(i.sources[0].index) == loose_.of(d.index)) {
    set_raw(d.index, get_raw(i.sources[0].index));
  } else if (Value* const number = emit_float(i)) {
    set_float(d, number, is_loose_operation(i));
  } else {
    Value* value = emit_scalar(i);
    if (value == nullptr) value = call_scalar(i);
    set(d, value);
  }
  if (before != nullptr) set_raw(d.index, at.CreateSelect(holds, get_raw(d.index), before));
}

Value* emitter::call_scalar(const instruction& i) {
  Value* arguments[4];
  for (std::size_t n = 0; n < 4; ++n) arguments[n] = n < i.sources.size() ? get(i.sources[n], 64) : number(64, 0);
  if (i.sources.size() < 4) arguments[3] = number(64, i.description);
  const void* const function = reinterpret_cast<const void*>(i.scalar);
  if (!is_wide()) return call(function, at.getInt64Ty(), arguments, true);
  Value* results = llvm::PoisonValue::get(ints(64));
  for (unsigned lane = 0; lane < lane_count(); ++lane) {
    Value* own[4];
    for (std::size_t n = 0; n < 4; ++n) own[n] = at.CreateExtractElement(arguments[n], lane);
    results = at.CreateInsertElement(results, call(function, at.getInt64Ty(), own, true), lane);
  }
  return results;
}

Value* emitter::emit_scalar(const instruction& i) {
  if (Value* const v = emit_compare(i)) return v;
  if (Value* const v = emit_half(i)) return v;
  if (Value* const v = emit_conversion(i)) return v;
  if (Value* const v = emit_bits(i)) return v;
  return emit_integer(i);
}

namespace {

bool is_plain_integer(type t) {
  return !is_float(t) && t != type::none && t != type::pred && t != type::u16x2 && t != type::s16x2 &&
         bits_of(t) >= 16 && bits_of(t) <= 64;
}

}  // namespace

// For division by zero, and for division of the smallest number by -1, the results are those of scalar_integer.cpp.
Value* emitter::quotient(const instruction& i, bool rest) {
  const unsigned w = bits_of(i.types[0]);
  Value *const a = get(i.sources[0], w), *const b = get(i.sources[1], w);
  llvm::Type* const t = ints(w);
  Value *const zero = llvm::ConstantInt::get(t, 0), *const one = llvm::ConstantInt::get(t, 1),
               *const ones = llvm::Constant::getAllOnesValue(t);
  Value* const by_zero = at.CreateICmpEQ(b, zero);
  if (!is_signed(i.types[0])) {
    Value* const safe = at.CreateSelect(by_zero, one, b);
    return at.CreateSelect(by_zero, ones, rest ? at.CreateURem(a, safe) : at.CreateUDiv(a, safe));
  }
  Value* const by_minus_one = at.CreateICmpEQ(b, ones);
  Value* const safe = at.CreateSelect(at.CreateOr(by_zero, by_minus_one), one, b);
  Value* const usual = rest ? at.CreateSRem(a, safe) : at.CreateSDiv(a, safe);
  Value* const other = at.CreateSelect(by_zero, ones, rest ? zero : at.CreateNeg(a));
  return at.CreateSelect(at.CreateOr(by_zero, by_minus_one), other, usual);
}

Value* emitter::emit_integer(const instruction& i) {
  const type t = i.types[0];
  if (!is_plain_integer(t) || i.has(modifier::sat) || i.has(modifier::relu)) return nullptr;
  const unsigned w = bits_of(t);
  const bool s = is_signed(t);
  const auto source = [&](std::size_t n) { return get(i.sources[n], w); };
  const auto wide = [&](Value* v, unsigned bits) {
    return s ? at.CreateSExt(v, ints(bits)) : at.CreateZExt(v, ints(bits));
  };
  const auto product = [&]() -> Value* {
    if (i.has(modifier::lo)) return at.CreateMul(source(0), source(1));
    Value* const whole = at.CreateMul(wide(source(0), 2 * w), wide(source(1), 2 * w));
    return i.has(modifier::wide) ? whole : at.CreateTrunc(at.CreateLShr(whole, w), ints(w));
  };
  switch (i.op) {
    case opcode::add: return at.CreateAdd(source(0), source(1));
    case opcode::sub: return at.CreateSub(source(0), source(1));
    case opcode::mul: return product();
    case opcode::mad: return at.CreateAdd(product(), get(i.sources[2], i.has(modifier::wide) ? 2 * w : w));
    case opcode::div: return quotient(i, false);
    case opcode::rem: return quotient(i, true);
    case opcode::neg: return at.CreateNeg(source(0));
    case opcode::abs: {
      Value* const a = source(0);
      return at.CreateSelect(at.CreateICmpSLT(a, llvm::ConstantInt::get(a->getType(), 0)), at.CreateNeg(a), a);
    }
    case opcode::min:
    case opcode::max: {
      Value *const a = source(0), *const b = source(1);
      Value* const less = s ? at.CreateICmpSLT(a, b) : at.CreateICmpULT(a, b);
      return i.op == opcode::min ? at.CreateSelect(less, a, b) : at.CreateSelect(less, b, a);
    }
    case opcode::add_carry: return at.CreateAdd(at.CreateAdd(source(0), source(1)), get(i.sources[2], w));
    case opcode::sub_borrow: return at.CreateSub(at.CreateSub(source(0), source(1)), get(i.sources[2], w));
    case opcode::carry_out: {
      Value* const sum = at.CreateAdd(at.CreateAdd(get(i.sources[0], w), number(w, 0)), number(w, 0));
      Value* const whole =
          at.CreateAdd(at.CreateAdd(at.CreateZExt(sum, ints(2 * w)), at.CreateZExt(source(1), ints(2 * w))),
                       get(i.sources[2], 2 * w));
      return at.CreateTrunc(at.CreateLShr(whole, w), ints(1));
    }
    case opcode::borrow_out: {
      Value* const whole =
          at.CreateSub(at.CreateSub(at.CreateZExt(source(0), ints(2 * w)), at.CreateZExt(source(1), ints(2 * w))),
                       get(i.sources[2], 2 * w));
      return at.CreateTrunc(at.CreateLShr(whole, 2 * w - 1), ints(1));
    }
    default: return nullptr;
  }
}

Value* emitter::emit_bits(const instruction& i) {
  const type t = i.types[0];
  const unsigned w = bits_of(t);
  if (w == 0) return nullptr;
  const auto source = [&](std::size_t n) { return get(i.sources[n], w); };
  const auto amount = [&](std::size_t n) { return get(i.sources[n], 32); };
  const auto own_number = [&](std::uint64_t v) { return number(w, v); };
  // Returns the position or length of a bit field, as in scalar_bits.cpp.
  const auto field_operand = [&](const operand& o) { return o.value & (w == 32 ? 0xffU : 0xffffffffU); };
  switch (i.op) {
    case opcode::and_: return at.CreateAnd(source(0), source(1));
    case opcode::or_: return at.CreateOr(source(0), source(1));
    case opcode::xor_: return at.CreateXor(source(0), source(1));
    case opcode::not_: return at.CreateNot(source(0));
    case opcode::mov: return source(0);
    case opcode::selp: return at.CreateSelect(get(i.sources[2], 1), source(0), source(1));
    case opcode::shl:
    case opcode::shr: {
      Value* const n = amount(1);
      Value* const fits = at.CreateICmpULT(n, number(32, w));
      if (i.op == opcode::shr && is_signed(t)) {
        Value* const capped = at.CreateSelect(fits, n, number(32, w - 1));
        return at.CreateAShr(source(0), at.CreateZExtOrTrunc(capped, ints(w)));
      }
      Value* const masked = at.CreateAnd(at.CreateZExtOrTrunc(n, ints(w)), own_number(w - 1));
      Value* const shifted = i.op == opcode::shl ? at.CreateShl(source(0), masked) : at.CreateLShr(source(0), masked);
      return at.CreateSelect(fits, shifted, own_number(0));
    }
    case opcode::popc: return at.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, source(0));
    case opcode::clz: return at.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, source(0), at.getFalse());
    case opcode::brev: return at.CreateUnaryIntrinsic(llvm::Intrinsic::bitreverse, source(0));
    case opcode::bfind: {
      Value* a = source(0);
      if (is_signed(t)) a = at.CreateXor(a, at.CreateAShr(a, w - 1));
      Value* const zeros =
          at.CreateZExtOrTrunc(at.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, a, at.getFalse()), ints(32));
      if (!i.has(modifier::shiftamt)) return at.CreateSub(number(32, w - 1), zeros);
      return at.CreateSelect(at.CreateICmpEQ(a, own_number(0)), number(32, ~0U), zeros);
    }
    case opcode::lop3: {
      Value* result = own_number(0);
      if (i.sources[3].what != operand::kind::immediate) return nullptr;
      Value *const a = source(0), *const b = source(1), *const c = source(2);
      for (unsigned n = 0; n < 8; ++n) {
        if ((i.sources[3].value >> n & 1) == 0) continue;
        Value* const x = (n & 4) != 0 ? a : at.CreateNot(a);
        Value* const y = (n & 2) != 0 ? b : at.CreateNot(b);
        Value* const z = (n & 1) != 0 ? c : at.CreateNot(c);
        result = at.CreateOr(result, at.CreateAnd(at.CreateAnd(x, y), z));
      }
      return result;
    }
    case opcode::shf: {
      Value* n = amount(2);
      n = i.has(modifier::wrap) ? at.CreateAnd(n, 31)
                                : at.CreateSelect(at.CreateICmpULT(n, number(32, 32)), n, number(32, 32));
      n = at.CreateZExt(n, ints(64));
      Value* const both = at.CreateOr(at.CreateShl(get(i.sources[1], 64), 32), get(i.sources[0], 64));
      return i.has(modifier::l) ? at.CreateLShr(at.CreateShl(both, n), 32) : at.CreateLShr(both, n);
    }
    case opcode::prmt: {
      if (i.sources[2].what != operand::kind::immediate ||
          i.modifiers.one_of(modifier::f4e, modifier::b4e, modifier::rc8, modifier::ecl, modifier::ecr,
                             modifier::rc16) != modifier::count)
        return nullptr;
      Value* const both = at.CreateOr(at.CreateShl(get(i.sources[1], 64), 32), get(i.sources[0], 64));
      Value* result = number(32, 0);
      for (unsigned n = 0; n < 4; ++n) {
        const unsigned choice = i.sources[2].value >> (4 * n) & 15;
        Value* byte = at.CreateTrunc(at.CreateLShr(both, 8 * (choice & 7)), ints(8));
        if ((choice & 8) != 0) byte = at.CreateAShr(byte, 7);
        result = at.CreateOr(result, at.CreateShl(at.CreateZExt(byte, ints(32)), 8 * n));
      }
      return result;
    }
    case opcode::bfe: {
      if (i.sources[1].what != operand::kind::immediate || i.sources[2].what != operand::kind::immediate)
        return nullptr;
      const std::uint64_t position = field_operand(i.sources[1]), length = field_operand(i.sources[2]);
      if (length == 0 || position + length > w) return nullptr;
      Value* const up = at.CreateShl(source(0), w - position - length);
      return is_signed(t) ? at.CreateAShr(up, w - length) : at.CreateLShr(up, w - length);
    }
    case opcode::bfi: {
      if (i.sources[2].what != operand::kind::immediate || i.sources[3].what != operand::kind::immediate)
        return nullptr;
      const std::uint64_t position = field_operand(i.sources[2]), length = field_operand(i.sources[3]);
      if (length == 0 || position + length > w) return nullptr;
      const std::uint64_t mask = (length == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << length) - 1) << position;
      return at.CreateOr(at.CreateAnd(at.CreateShl(source(0), position), own_number(mask)),
                         at.CreateAnd(source(1), own_number(~mask)));
    }
    case opcode::pack: {
      const unsigned part = w / static_cast<unsigned>(i.sources.size());
      Value* result = own_number(0);
      for (std::size_t n = 0; n < i.sources.size(); ++n)
        result = at.CreateOr(result, at.CreateShl(at.CreateZExt(get(i.sources[n], part), ints(w)), n * part));
      return result;
    }
    case opcode::unpack: return at.CreateTrunc(at.CreateLShr(get(i.sources[0], 64), i.sources[1].value), ints(w));
    case opcode::half_select: return at.CreateTrunc(at.CreateLShr(source(0), i.sources[1].value), ints(1));
    default: return nullptr;
  }
}

// Conversions from integers to integers. emit_float.cpp contains conversions from and to floats.
Value* emitter::emit_conversion(const instruction& i) {
  if (i.op != opcode::cvt) return nullptr;
  const type to = i.types[0], from = i.second_type();
  if (to == type::f16 || to == type::f16x2 || to == type::bf16 || to == type::bf16x2) return emit_conversion_to_half(i);
  if (to == type::f32 && from == type::bf16 && !i.has(modifier::ftz) && !i.has(modifier::sat))
    return at.CreateShl(get(i.sources[0], 32), 16);
  if (is_float(to) || i.types[1] == type::none) return nullptr;
  if (is_float(from)) return emit_float_conversion(i);
  if (i.has(modifier::sat)) return nullptr;
  Value* value = get(i.sources[0], bits_of(from));
  value =
      is_signed(from) ? at.CreateSExtOrTrunc(value, ints(bits_of(to))) : at.CreateZExtOrTrunc(value, ints(bits_of(to)));
  return is_signed(to) ? at.CreateSExt(value, ints(64)) : at.CreateZExt(value, ints(64));
}

}  // namespace hpe::ptx
