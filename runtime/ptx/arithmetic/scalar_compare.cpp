// Comparisons: setp, set, slct, testp. An ordered comparison with a NaN is false, an unordered one true.

#include <bit>
#include <cmath>
#include <type_traits>

#include "runtime/ptx/arithmetic/scalar.h"
#include "runtime/ptx/program/float_format.h"

namespace hpe::ptx {

namespace {

using u64 = std::uint64_t;

template <class T>
bool is_number(T value) {
  if constexpr (std::is_floating_point_v<T>) return !std::isnan(value);
  return true;
}

template <class T>
bool compare(modifier how, T a, T b) {
  switch (how) {
    case modifier::eq: return a == b;
    case modifier::ne: return a < b || a > b;  // for floating point: an ordered comparison
    case modifier::lt:
    case modifier::lo: return a < b;
    case modifier::le:
    case modifier::ls: return a <= b;
    case modifier::gt:
    case modifier::hi: return a > b;
    case modifier::ge:
    case modifier::hs: return a >= b;
    case modifier::equ: return !(a < b || a > b);
    case modifier::neu: return a != b;
    case modifier::ltu: return !(a >= b);
    case modifier::leu: return !(a > b);
    case modifier::gtu: return !(a <= b);
    case modifier::geu: return !(a < b);
    case modifier::num: return is_number(a) && is_number(b);
    case modifier::nan: return !is_number(a) || !is_number(b);
    default: return false;
  }
}

double flushed(double value, double smallest_normal) {
  return std::fabs(value) < smallest_normal ? std::copysign(0.0, value) : value;
}

double as_double(u64 raw, type t, bool ftz) {
  switch (t) {
    case type::f32: {
      const double value = std::bit_cast<float>(static_cast<std::uint32_t>(raw));
      return ftz ? flushed(value, 0x1p-126) : value;
    }
    case type::f64: return std::bit_cast<double>(raw);
    case type::bf16: return decode(raw & 0xffff, brain_format);
    default: {
      const double value = decode(raw & 0xffff, half_format);
      return ftz ? flushed(value, 0x1p-14) : value;
    }
  }
}

bool holds(u64 a, u64 b, type t, const descriptor& how) {
  if (is_float(t)) return compare(how.compare, as_double(a, t, how.ftz), as_double(b, t, how.ftz));
  const unsigned cut = 64 - bits_of(t);
  const bool as_unsigned = !is_signed(t) || how.compare == modifier::lo || how.compare == modifier::ls ||
                           how.compare == modifier::hi || how.compare == modifier::hs;
  if (as_unsigned) return compare(how.compare, a << cut >> cut, b << cut >> cut);
  return compare(how.compare, static_cast<std::int64_t>(a << cut) >> cut, static_cast<std::int64_t>(b << cut) >> cut);
}

template <type t>
u64 set_predicate(u64 a, u64 b, u64, u64 d) {
  return holds(a, b, t, descriptor::unpack(d)) ? 1 : 0;
}

scalar_function find_set_predicate(type t) {
  switch (t) {
    case type::b16: return set_predicate<type::b16>;
    case type::u16: return set_predicate<type::u16>;
    case type::s16: return set_predicate<type::s16>;
    case type::b32: return set_predicate<type::b32>;
    case type::u32: return set_predicate<type::u32>;
    case type::s32: return set_predicate<type::s32>;
    case type::b64: return set_predicate<type::b64>;
    case type::u64: return set_predicate<type::u64>;
    case type::s64: return set_predicate<type::s64>;
    case type::f16: return set_predicate<type::f16>;
    case type::bf16: return set_predicate<type::bf16>;
    case type::f32: return set_predicate<type::f32>;
    case type::f64: return set_predicate<type::f64>;
    default: return nullptr;
  }
}

// Returns the value of "true" in the result of set: 1.0 for floating-point types, otherwise all ones.
u64 truth(type t) {
  switch (t) {
    case type::f16: return 0x3c00;
    case type::bf16: return 0x3f80;
    case type::f32: return 0x3f800000;
    case type::f64: return 0x3ff0000000000000;
    default: return ~u64{0} >> (64 - bits_of(t));
  }
}

u64 set(u64 a, u64 b, u64, u64 d) {
  const descriptor how = descriptor::unpack(d);
  if (how.from != type::f16x2 && how.from != type::bf16x2) return holds(a, b, how.from, how) ? truth(how.to) : 0;
  const type part = how.from == type::f16x2 ? type::f16 : type::bf16;
  const u64 yes = is_float(how.to) ? truth(part) : 0xffff;
  return (holds(a, b, part, how) ? yes : 0) | (holds(a >> 16, b >> 16, part, how) ? yes << 16 : 0);
}

u64 select_by_sign(u64 a, u64 b, u64 c, u64 d) {
  const descriptor how = descriptor::unpack(d);
  if (how.from == type::f32) return as_double(c, type::f32, how.ftz) >= 0 ? a : b;
  return static_cast<std::int32_t>(c) >= 0 ? a : b;
}

u64 test_property(u64 a, u64, u64, u64 d) {
  const descriptor how = descriptor::unpack(d);
  const double value = as_double(a, how.to, false);
  const double smallest = how.to == type::f32 ? 0x1p-126 : 0x1p-1022;
  switch (how.compare) {
    case modifier::finite: return std::isfinite(value) ? 1 : 0;
    case modifier::infinite: return std::isinf(value) ? 1 : 0;
    case modifier::number: return std::isnan(value) ? 0 : 1;
    case modifier::notanumber: return std::isnan(value) ? 1 : 0;
    case modifier::normal:  // an H200 treats zero as normal
      return value == 0 || (std::isfinite(value) && std::fabs(value) >= smallest) ? 1 : 0;
    case modifier::subnormal: return value != 0 && std::fabs(value) < smallest ? 1 : 0;
    default: return 0;
  }
}

}  // namespace

scalar_function find_compare_scalar(const instruction& i) {
  const modifier how = describe(i).compare;
  switch (i.op) {
    case opcode::setp: return how == modifier::count ? nullptr : find_set_predicate(i.types[0]);
    case opcode::set: return how == modifier::count ? nullptr : set;
    case opcode::slct: return i.second_type() == type::s32 || i.second_type() == type::f32 ? select_by_sign : nullptr;
    case opcode::testp: return how == modifier::count ? nullptr : test_property;
    default: return nullptr;
  }
}

}  // namespace hpe::ptx
