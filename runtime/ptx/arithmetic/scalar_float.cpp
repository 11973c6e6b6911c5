// f32 and f64 arithmetic. This file is compiled with -frounding-math, because directed rounding sets the CPU's rounding
// mode.
//
// An f32 result that is a NaN is 0x7fffffff (PTX ISA). PTX does not define which NaN an f64 operation returns; hpe
// returns the same NaN as an H200. If an operand is a NaN, the result is this NaN, made quiet. If several operands are
// NaNs, the second operand takes precedence over the third, and the third over the first; in a division, the first
// takes precedence over the second. If no operand is a NaN, the result is 0xfff8000000000000. The f32 .approx functions
// return the correctly rounded value or an adjacent one, within the error bounds of the PTX ISA. Only sine and cosine
// also round their argument as a GPU does (see angle()). The results for special cases are the same as on an H200.

#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "runtime/ptx/arithmetic/scalar.h"
#include "runtime/ptx/program/float_format.h"

namespace hpe::ptx {

namespace {

using u64 = std::uint64_t;

template <class T>
using bits_of_float = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

template <class T>
T get(u64 raw) {
  return std::bit_cast<T>(static_cast<bits_of_float<T>>(raw));
}

constexpr u64 quiet_bit = u64{1} << 51;
constexpr u64 invalid_result = 0xfff8000000000000;

// Returns the NaN that an f64 operation returns. The operands are in order of precedence.
u64 nan_of(u64 first, u64 second, u64 third) {
  for (const u64 raw : {first, second, third})
    if (std::isnan(get<double>(raw))) return raw | quiet_bit;
  return invalid_result;
}

// Returns the bits of a result. Not for f64 operations with a NaN operand (see nan_of).
template <class T>
u64 put(T value) {
  if (std::isnan(value)) return sizeof(T) == 4 ? 0x7fffffffU : invalid_result;
  return std::bit_cast<bits_of_float<T>>(value);
}

template <class T>
T flushed(T value) {
  return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(T{0}, value) : value;
}

template <class T>
T input(u64 raw, const descriptor& how) {
  const T value = get<T>(raw);
  return how.ftz && sizeof(T) == 4 ? flushed(value) : value;
}

template <class T>
u64 output(T value, const descriptor& how) {
  if (how.ftz && sizeof(T) == 4) value = flushed(value);
  if (how.sat) {
    if (!(value > 0)) return 0;  // also returns 0 for NaN
    if (value > 1) value = 1;
  }
  return put(value);
}

// Prevents the compiler from moving an operation out of the scope of the rounding_scope that sets its rounding mode.
template <class T>
T held(T value) {
  asm volatile("" : "+x"(value));
  return value;
}

// In `expression`, a, b and c are the operands, and T is their type.
#define HPE_FLOAT(expression)                                                                            \
  (t == type::f32 ? float_function<float>([]<class T>([[maybe_unused]] T a, [[maybe_unused]] T b,        \
                                                      [[maybe_unused]] T c) -> T { return expression; }) \
                  : float_function<double>([]<class T>([[maybe_unused]] T a, [[maybe_unused]] T b,       \
                                                       [[maybe_unused]] T c) -> T { return expression; }))

template <class T, bool divides = false, class Body>
scalar_function float_function(Body) {
  return [](u64 a, u64 b, u64 c, u64 d) -> u64 {
    const descriptor how = descriptor::unpack(d);
    const T x = held(input<T>(a, how)), y = held(input<T>(b, how)), z = held(input<T>(c, how));
    T result;
    {
      const rounding_scope scope(how.round);
      result = held(Body{}(held(x), held(y), held(z)));
    }
    if (sizeof(T) == 8 && std::isnan(result)) return divides ? nan_of(a, b, c) : nan_of(b, c, a);
    return output(result, how);
  };
}

template <class T>
T smaller(T a, T b) {
  if (std::isnan(a)) return b;
  if (std::isnan(b)) return a;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}

template <class T>
T larger(T a, T b) {
  if (std::isnan(a)) return b;
  if (std::isnan(b)) return a;
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}

template <class T, bool maximum>
u64 extreme(u64 a, u64 b, u64, u64 d) {
  const descriptor how = descriptor::unpack(d);
  T x = input<T>(a, how), y = input<T>(b, how);
  const bool sign = std::signbit(x) != std::signbit(y);
  if (how.nan && (std::isnan(x) || std::isnan(y))) return put(std::numeric_limits<T>::quiet_NaN());
  if (how.xorsign) {
    x = std::fabs(x);
    y = std::fabs(y);
  }
  if (sizeof(T) == 8 && std::isnan(x) && std::isnan(y)) return nan_of(b, a, 0);
  T result = maximum ? larger(x, y) : smaller(x, y);
  if (how.xorsign) result = std::copysign(result, sign ? T{-1} : T{1});
  return put(result);
}

// Apart from .ftz, neg, abs and copysign change only the sign bit. For a NaN operand, neg and abs return the same NaN
// as other operations.
template <class T>
u64 with_sign_bit(u64 raw, bool sign) {
  constexpr u64 top = u64{1} << (8 * sizeof(T) - 1);
  return sign ? raw | top : raw & ~top;
}

template <class T>
bool sign_of(u64 raw) {
  return (raw >> (8 * sizeof(T) - 1) & 1) != 0;
}

template <class T>
u64 flushed_bits(u64 raw, u64 d) {
  return descriptor::unpack(d).ftz && sizeof(T) == 4 ? std::bit_cast<bits_of_float<T>>(flushed(get<T>(raw))) : raw;
}

template <class T>
u64 negated(u64 a, u64, u64, u64 d) {
  if (std::isnan(get<T>(a))) return sizeof(T) == 4 ? put(get<T>(a)) : nan_of(a, 0, 0);
  return with_sign_bit<T>(flushed_bits<T>(a, d), !sign_of<T>(a));
}

template <class T>
u64 absolute(u64 a, u64, u64, u64 d) {
  if (std::isnan(get<T>(a))) return sizeof(T) == 4 ? put(get<T>(a)) : nan_of(a, 0, 0);
  return with_sign_bit<T>(flushed_bits<T>(a, d), false);
}

// PTX: copysign d, a, b returns b with the sign of a.
template <class T>
u64 sign_copied(u64 a, u64 b, u64, u64) {
  return with_sign_bit<T>(b, sign_of<T>(a));
}

// The f64 versions of rcp.approx and rsqrt.approx use only the upper 32 bits of the operand, and the lower 32 bits of
// the result are 0, as on the hardware.
u64 coarse(double value) { return (std::isnan(value) ? 0x7fffffffffffffffU : put(value)) & 0xffffffff00000000U; }

u64 coarse_reciprocal(u64 a, u64, u64, u64) {
  const auto x = get<double>(a & 0xffffffff00000000U);
  return coarse(flushed(1 / flushed(x)));
}

u64 coarse_reciprocal_root(u64 a, u64, u64, u64) {
  const auto x = get<double>(a & 0xffffffff00000000U);
  return coarse(1 / std::sqrt(flushed(x)));
}

// Returns the angle whose sine the hardware computes. The hardware multiplies `x` by 1/2pi, truncates the product to
// f32, and uses 24 bits of the fraction of a turn. Therefore the sine is 0 for angles below 2^-25 turns, and for angles
// of 2^24 turns or more.
double angle(double x) {
  constexpr double turns_per_radian = 0x1.45f306p-3;  // as f32
  const double exact = x * turns_per_radian;          // exact in a double, because it has at most 48 bits
  const double turns = std::bit_cast<double>(std::bit_cast<u64>(exact) & ~((u64{1} << 29) - 1));
  const double part = turns - std::trunc(turns);
  return std::copysign(std::nearbyint(part * 0x1p24) * 0x1p-24, x) * 6.283185307179586;
}

// Returns 2^x (see exp2_coefficients); a NaN if x is a NaN.
double power_of_two(double x) {
  const double limited = x > exp2_limit ? exp2_limit : x < -exp2_limit ? -exp2_limit : x;
  const double rounded = limited + exp2_rounder;
  const double rest = limited - (rounded - exp2_rounder);
  double sum = exp2_coefficients[std::size(exp2_coefficients) - 1];
  for (std::size_t n = std::size(exp2_coefficients) - 1; n-- > 0;) sum = std::fma(sum, rest, exp2_coefficients[n]);
  return sum * std::bit_cast<double>((std::bit_cast<u64>(rounded) + 1023) << 52);
}

// If the reciprocal of the divisor is subnormal, the result is that of an infinite divisor (PTX ISA, div.approx).
float quotient_by_reciprocal(float a, float b) {
  if (std::fabs(b) > 0x1p126F && std::isfinite(b)) return a * std::copysign(0.0F, b);
  return static_cast<float>(static_cast<double>(a) / static_cast<double>(b));
}

scalar_function find_approximate(const instruction& i) {
  const type t = i.types[0];
  if (t == type::f64) {
    if (i.op == opcode::rcp && i.has(modifier::ftz)) return coarse_reciprocal;
    if (i.op == opcode::rsqrt)
      return i.has(modifier::ftz) ? coarse_reciprocal_root
                                  : float_function<double>([]<class T>(T a, T, T) { return 1 / std::sqrt(a); });
    return nullptr;
  }
  if (t != type::f32) return nullptr;
#define HPE_APPROXIMATE(expression)                                      \
  float_function<float>([]<class T>(T x, [[maybe_unused]] T y, T) -> T { \
    const auto a = static_cast<double>(x);                               \
    return static_cast<float>(expression);                               \
  })
  switch (i.op) {
    case opcode::div:
      return i.has(modifier::full)
                 ? HPE_APPROXIMATE(a / static_cast<double>(y))
                 : float_function<float>([]<class T>(T x, T y, T) -> T { return quotient_by_reciprocal(x, y); });
    case opcode::rcp: return HPE_APPROXIMATE(1 / a);
    case opcode::rsqrt: return HPE_APPROXIMATE(1 / std::sqrt(a));
    case opcode::sqrt: return HPE_APPROXIMATE(std::sqrt(a));
    case opcode::sin: return HPE_APPROXIMATE(std::sin(angle(a)));
    case opcode::cos: return HPE_APPROXIMATE(std::cos(angle(a)));
    case opcode::ex2: return HPE_APPROXIMATE(power_of_two(a));
    case opcode::lg2: return HPE_APPROXIMATE(std::log2(a));
    case opcode::tanh: return HPE_APPROXIMATE(std::tanh(a));
    default: return nullptr;
  }
}

}  // namespace

scalar_function find_float_scalar(const instruction& i) {
  const type t = i.types[0];
  if (t != type::f32 && t != type::f64) return nullptr;
  const bool single = t == type::f32;
  if (i.has(modifier::approx) || i.has(modifier::full)) return find_approximate(i);
  const bool rounded = i.modifiers.one_of(modifier::rn, modifier::rz, modifier::rm, modifier::rp) != modifier::count;
  switch (i.op) {
    case opcode::add: return HPE_FLOAT(a + b);
    case opcode::sub: return HPE_FLOAT(a - b);
    case opcode::mul: return HPE_FLOAT(a * b);
    case opcode::fma:
    case opcode::mad: return rounded ? HPE_FLOAT(std::fma(a, b, c)) : nullptr;
    case opcode::product_less: return HPE_FLOAT(std::fma(a, b, -c));
    case opcode::less_product: return HPE_FLOAT(std::fma(-a, b, c));
    case opcode::div:
      if (!rounded) return nullptr;
      return single ? float_function<float>([]<class T>(T a, T b, T) -> T { return a / b; })
                    : float_function<double, true>([]<class T>(T a, T b, T) -> T { return a / b; });
    case opcode::rcp: return rounded ? HPE_FLOAT(1 / a) : nullptr;
    case opcode::sqrt: return rounded ? HPE_FLOAT(std::sqrt(a)) : nullptr;
    case opcode::min: return single ? extreme<float, false> : extreme<double, false>;
    case opcode::max: return single ? extreme<float, true> : extreme<double, true>;
    case opcode::neg: return single ? negated<float> : negated<double>;
    case opcode::abs: return single ? absolute<float> : absolute<double>;
    case opcode::copysign: return single ? sign_copied<float> : sign_copied<double>;
    default: return nullptr;
  }
}

}  // namespace hpe::ptx
