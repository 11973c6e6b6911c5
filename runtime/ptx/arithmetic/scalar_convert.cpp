// cvt. The functions convert the operand exactly to an integer or a double, and then round once to the type of the
// result. This file is compiled with -frounding-math.
//
// The PTX ISA does not define the results for a NaN. hpe returns the same results as an H200. The integer result for a
// NaN is 0, except in conversions from f64 or to a 64-bit integer, whose result has only the top bit set. Without .sat
// and .relu, a conversion between f64 and another floating-point format keeps the NaN's sign and as many top bits of
// its payload as fit, and makes the NaN quiet (with .ftz, a conversion of f32 first replaces the NaN by 0x7fffffff); a
// conversion of bf16 to f32 appends zero bits, and a conversion to tf32 removes bits. All other conversions return the
// canonical NaN of the format, or 0 with .sat. For e4m3 and e5m2, the canonical NaN is 0x7f; this value was not
// verified on a GPU.

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "runtime/ptx/arithmetic/scalar.h"
#include "runtime/ptx/program/float_format.h"

namespace hpe::ptx {

namespace {

using u64 = std::uint64_t;
using i128 = __int128;

double float_value(u64 raw, type t) {
  switch (t) {
    case type::f16: return decode(raw & 0xffff, half_format);
    case type::bf16: return decode(raw & 0xffff, brain_format);
    case type::f64: return std::bit_cast<double>(raw);
    default: return std::bit_cast<float>(static_cast<std::uint32_t>(raw));
  }
}

i128 integer_value(u64 raw, type t) {
  const unsigned cut = 64 - bits_of(t);
  if (is_signed(t)) return static_cast<std::int64_t>(raw << cut) >> cut;
  return raw << cut >> cut;
}

double smallest_normal(type t) { return t == type::f32 ? 0x1p-126 : t == type::f16 ? 0x1p-14 : 0; }

double flushed(double value, type t) {
  return std::fabs(value) < smallest_normal(t) ? std::copysign(0.0, value) : value;
}

double to_integral(double value, rounding round) {
  switch (round) {
    case rounding::toward_zero: return std::trunc(value);
    case rounding::down: return std::floor(value);
    case rounding::up: return std::ceil(value);
    case rounding::nearest_away: return std::round(value);
    case rounding::nearest_even: break;
  }
  return std::nearbyint(value);
}

u64 encode_single(double value, rounding round) {
  if (std::isnan(value)) return 0x7fffffff;
  const rounding_scope scope(round);
  volatile double in = value;
  const volatile auto out = static_cast<float>(in);
  return std::bit_cast<std::uint32_t>(static_cast<float>(out));
}

// Converts a NaN from or to f64: the top bit of the payload remains the top bit.
u64 converted_nan(u64 raw, type from, type to) {
  struct layout {
    unsigned width, mantissa;
  };
  const auto layout_of = [](type t) -> layout {
    if (t == type::f64) return {64, 52};
    if (t == type::f16) return {16, 10};
    return {bits_of(t), bits_of(t) == 16 ? 7U : 23U};
  };
  const layout in = layout_of(from), out = layout_of(to);
  const u64 sign = raw >> (in.width - 1) & 1;
  // bit 62 is the top bit of the payload
  const u64 payload = (raw & ((u64{1} << in.mantissa) - 1)) << (63 - in.mantissa);
  const u64 exponent = ((u64{1} << (out.width - 1 - out.mantissa)) - 1) << out.mantissa;
  return sign << (out.width - 1) | exponent | u64{1} << (out.mantissa - 1) | payload >> (63 - out.mantissa);
}

u64 encode_float(double value, const descriptor& how) {
  if (how.sat) value = value > 0 ? std::fmin(value, 1) : 0;
  if (how.relu && !std::isnan(value) && !(value > 0)) value = 0;
  switch (how.to) {
    case type::f16: return encode(value, half_format, how.round);
    case type::bf16: return encode(value, brain_format, how.round);
    case type::tf32: return encode(value, tensor_format, how.round) << 13;
    case type::f64: return std::isnan(value) ? 0x7ff8000000000000 : std::bit_cast<u64>(value);
    default: {
      const u64 raw = encode_single(value, how.round);
      return how.ftz && (raw & 0x7f800000) == 0 ? raw & 0x80000000 : raw;
    }
  }
}

// Return the smallest and the largest number of an integer type.
i128 lowest(type t) { return is_signed(t) ? -(i128{1} << (bits_of(t) - 1)) : 0; }
i128 highest(type t) { return (i128{1} << (bits_of(t) - (is_signed(t) ? 1 : 0))) - 1; }

u64 integer_from_float(double value, const descriptor& how) {
  if (std::isnan(value)) {
    const bool wide = bits_of(how.to) == 64 || how.from == type::f64;
    return wide ? static_cast<u64>(integer_value(u64{1} << (bits_of(how.to) - 1), how.to)) : 0;
  }
  const double whole = to_integral(value, how.round);
  if (whole >= 0x1p64) return static_cast<u64>(highest(how.to));
  if (whole < -0x1p63) return static_cast<u64>(lowest(how.to));
  return static_cast<u64>(std::clamp(static_cast<i128>(whole), lowest(how.to), highest(how.to)));
}

u64 double_from_integer(i128 value, rounding round) {
  const rounding_scope scope(round);
  const bool negative = value < 0;
  volatile auto as_signed = static_cast<std::int64_t>(value);
  volatile auto as_unsigned = static_cast<u64>(value);
  const volatile double result = negative ? static_cast<double>(as_signed) : static_cast<double>(as_unsigned);
  return std::bit_cast<u64>(static_cast<double>(result));
}

u64 convert(u64 a, u64, u64, u64 d) {
  const descriptor how = descriptor::unpack(d);
  if (is_float(how.from)) {
    double value = float_value(a, how.from);
    if (how.ftz) value = flushed(value, how.from);
    if (!is_float(how.to)) return integer_from_float(value, how);
    if (std::isnan(value) && !how.sat && !how.relu) {
      if (how.to == type::tf32) return a & 0xffffe000U;
      if (how.from == type::bf16 && how.to == type::f32) return (a & 0xffff) << 16;
      const bool made_canonical = how.ftz && how.from == type::f32;
      if (how.from == type::f64 || how.to == type::f64)
        return converted_nan(made_canonical ? 0x7fffffffU : a, how.from, how.to);
    }
    if (how.to_integral) value = to_integral(value, how.round);
    return encode_float(value, how);
  }
  const i128 value = integer_value(a, how.from);
  if (!is_float(how.to)) {
    const i128 kept = how.sat ? std::clamp(value, lowest(how.to), highest(how.to)) : value;
    return static_cast<u64>(
        integer_value(static_cast<u64>(kept), how.to));  // sign-extended, because the register may be wider
  }
  if (how.to == type::f64) return double_from_integer(value, how.round);
  return encode_float(integer_to_odd(value < 0, static_cast<u64>(value < 0 ? -value : value)), how);
}

// cvt.f16x2.f32 d, a, b: converts a to the upper half of d, and b to the lower half.
u64 convert_pair(u64 a, u64 b, u64, u64 d) {
  descriptor how = descriptor::unpack(d);
  how.to = how.to == type::f16x2 ? type::f16 : type::bf16;
  return encode_float(float_value(a, how.from), how) << 16 | encode_float(float_value(b, how.from), how);
}

bool is_pair_of_bytes(type t) { return t == type::e4m3x2 || t == type::e5m2x2; }

const float_format& format_of_bytes(type t) { return t == type::e4m3x2 ? e4m3_format : e5m2_format; }

u64 encode_byte(double value, const descriptor& how) {
  if (how.relu && !std::isnan(value) && !(value > 0)) value = 0;
  return encode_finite(value, format_of_bytes(how.to));
}

// cvt.e4m3x2.f32 d, a, b: converts a to the upper byte of d, and b to the lower byte.
u64 convert_floats_to_bytes(u64 a, u64 b, u64, u64 d) {
  const descriptor how = descriptor::unpack(d);
  return encode_byte(float_value(a, how.from), how) << 8 | encode_byte(float_value(b, how.from), how);
}

u64 convert_halves_to_bytes(u64 a, u64, u64, u64 d) {
  const descriptor how = descriptor::unpack(d);
  return encode_byte(float_value(a >> 16, type::f16), how) << 8 | encode_byte(float_value(a, type::f16), how);
}

u64 convert_bytes_to_halves(u64 a, u64, u64, u64 d) {
  descriptor how = descriptor::unpack(d);
  how.to = type::f16;
  const float_format& format = format_of_bytes(how.from);
  return encode_float(decode(a >> 8 & 0xff, format), how) << 16 | encode_float(decode(a & 0xff, format), how);
}

// Returns whether a conversion needs a rounding modifier: between integers and floats, and to a narrower float.
bool needs_rounding(const instruction& i) {
  const type to = i.types[0], from = i.second_type();
  if (is_float(to) && !is_float(from)) return true;
  if (!is_float(to)) return is_float(from);
  return bits_of(to) < bits_of(from);
}

}  // namespace

scalar_function find_conversion_scalar(const instruction& i) {
  if (i.op != opcode::cvt) return nullptr;
  const bool rounded =
      i.modifiers.one_of(modifier::rn, modifier::rz, modifier::rm, modifier::rp, modifier::rna, modifier::rni,
                         modifier::rzi, modifier::rmi, modifier::rpi) != modifier::count;
  const type to = i.types[0], from = i.second_type();
  if (is_pair_of_bytes(to)) {
    if (!i.has(modifier::rn) || !i.has(modifier::satfinite)) return nullptr;
    return from == type::f32 ? convert_floats_to_bytes : from == type::f16x2 ? convert_halves_to_bytes : nullptr;
  }
  if (is_pair_of_bytes(from))
    return to == type::f16x2 && i.has(modifier::rn) && !i.has(modifier::satfinite) ? convert_bytes_to_halves : nullptr;
  if (to == type::f16x2 || to == type::bf16x2) return from == type::f32 && rounded ? convert_pair : nullptr;
  if (from == type::f16x2 || from == type::bf16x2 || from == type::tf32 || i.types[1] == type::none) return nullptr;
  if (needs_rounding(i) && !rounded) return nullptr;
  return convert;
}

}  // namespace hpe::ptx
