// f16 and bf16 arithmetic, scalar and packed. The functions compute sums, products and fma in double with rounding to
// odd, and then round to the format, so that the result is correctly rounded (float_format.h). A NaN result is 0x7fff.

#include <cmath>

#include "runtime/ptx/arithmetic/scalar.h"
#include "runtime/ptx/program/float_format.h"

namespace hpe::ptx {

namespace {

using u64 = std::uint64_t;

// Only f16 instructions can have .ftz.
u64 flushed_half(u64 raw, const descriptor& how) {
  return how.ftz && (raw & 0x7c00) == 0 ? raw & 0x8000 : raw & 0xffff;
}

u64 finish(double value, const float_format& format, const descriptor& how) {
  if (how.sat) value = value > 0 ? std::fmin(value, 1) : 0;
  if (how.relu && !std::isnan(value) && !(value > 0)) value = 0;
  const u64 raw = encode(value, format, rounding::nearest_even);
  return format.mantissa_bits == half_format.mantissa_bits ? flushed_half(raw, how) : raw;
}

struct half {
  static constexpr const float_format& format = half_format;
};
struct brain {
  static constexpr const float_format& format = brain_format;
};

template <class Format, class Body>
u64 once(u64 a, u64 b, u64 c, const descriptor& how) {
  const auto in = [&](u64 raw) {
    return decode(Format::format.mantissa_bits == half_format.mantissa_bits ? flushed_half(raw, how) : raw & 0xffff,
                  Format::format);
  };
  return finish(Body{}(in(a), in(b), in(c)), Format::format, how);
}

template <class Format, class Body>
scalar_function one(Body) {
  return [](u64 a, u64 b, u64 c, u64 d) -> u64 { return once<Format, Body>(a, b, c, descriptor::unpack(d)); };
}

template <class Format, class Body>
scalar_function two(Body) {
  return [](u64 a, u64 b, u64 c, u64 d) -> u64 {
    const descriptor how = descriptor::unpack(d);
    return once<Format, Body>(a, b, c, how) | once<Format, Body>(a >> 16, b >> 16, c >> 16, how) << 16;
  };
}

template <class Body>
scalar_function for_half(type t, Body body) {
  switch (t) {
    case type::f16: return one<half>(body);
    case type::f16x2: return two<half>(body);
    case type::bf16: return one<brain>(body);
    case type::bf16x2: return two<brain>(body);
    default: return nullptr;
  }
}

// min, max, neg and abs compute their results from the bits of the operands, without rounding.
template <class Format, class Body>
scalar_function bitwise(bool pair, Body) {
  if (pair)
    return [](u64 a, u64 b, u64, u64 d) -> u64 {
      const descriptor how = descriptor::unpack(d);
      return Body::template apply<Format>(a & 0xffff, b & 0xffff, how) |
             Body::template apply<Format>(a >> 16 & 0xffff, b >> 16 & 0xffff, how) << 16;
    };
  return [](u64 a, u64 b, u64, u64 d) -> u64 {
    return Body::template apply<Format>(a & 0xffff, b & 0xffff, descriptor::unpack(d));
  };
}

template <class Body>
scalar_function bitwise_for(type t, Body body) {
  const bool pair = t == type::f16x2 || t == type::bf16x2;
  if (t == type::f16 || t == type::f16x2) return bitwise<half>(pair, body);
  if (t == type::bf16 || t == type::bf16x2) return bitwise<brain>(pair, body);
  return nullptr;
}

template <bool maximum>
struct extreme {
  template <class Format>
  static u64 apply(u64 a, u64 b, const descriptor& how) {
    if (Format::format.mantissa_bits == half_format.mantissa_bits) {
      a = flushed_half(a, how);
      b = flushed_half(b, how);
    }
    const bool sign = ((a ^ b) & 0x8000) != 0;
    if (how.xorsign) {
      a &= 0x7fff;
      b &= 0x7fff;
    }
    const double x = decode(a, Format::format), y = decode(b, Format::format);
    const bool none = std::isnan(x) && std::isnan(y), any = std::isnan(x) || std::isnan(y);
    if (none || (how.nan && any)) return Format::format.nan;
    u64 result = 0;
    if (any) {
      result = std::isnan(x) ? b : a;
    } else if (x == y) {
      result = ((a & 0x8000) != 0) == maximum ? b : a;
    } else {
      result = (x > y) == maximum ? a : b;
    }
    if (how.xorsign) result = (result & 0x7fff) | (sign ? 0x8000 : 0);
    if (how.relu && (result & 0x8000) != 0) result = 0;
    return result;
  }
};

// If the operand is a NaN, returns the canonical NaN.
struct negation {
  template <class Format>
  static u64 apply(u64 a, u64, const descriptor& how) {
    return std::isnan(decode(a, Format::format)) ? Format::format.nan : flushed_half(a, how) ^ 0x8000;
  }
};

struct magnitude {
  template <class Format>
  static u64 apply(u64 a, u64, const descriptor& how) {
    return std::isnan(decode(a, Format::format)) ? Format::format.nan : flushed_half(a, how) & 0x7fff;
  }
};

double fused(double a, double b, double c) {
  const double product = a * b;  // exact: the product has at most 22 bits
  return add_to_odd(product, c);
}

}  // namespace

scalar_function find_half_scalar(const instruction& i) {
  const type t = i.types[0];
  switch (i.op) {
    case opcode::add: return for_half(t, [](double a, double b, double) { return add_to_odd(a, b); });
    case opcode::sub: return for_half(t, [](double a, double b, double) { return add_to_odd(a, -b); });
    case opcode::mul: return for_half(t, [](double a, double b, double) { return a * b; });
    case opcode::fma: return for_half(t, [](double a, double b, double c) { return fused(a, b, c); });
    case opcode::ex2: return for_half(t, [](double a, double, double) { return std::exp2(a); });
    case opcode::tanh: return for_half(t, [](double a, double, double) { return std::tanh(a); });
    case opcode::min: return bitwise_for(t, extreme<false>{});
    case opcode::max: return bitwise_for(t, extreme<true>{});
    case opcode::neg: return bitwise_for(t, negation{});
    case opcode::abs: return bitwise_for(t, magnitude{});
    default: return nullptr;
  }
}

}  // namespace hpe::ptx
