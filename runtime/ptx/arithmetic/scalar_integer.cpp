// Integer arithmetic. The functions extend operands to 64 bits according to their type, and truncate results to the
// type.
//
// The PTX ISA does not define division by zero. In hpe, all bits of the quotient and of the remainder are then 1, as on
// an H200.

#include <algorithm>
#include <limits>
#include <type_traits>

#include "runtime/ptx/arithmetic/scalar.h"

namespace hpe::ptx {

namespace {

using u64 = std::uint64_t;
using i128 = __int128;
using u128 = unsigned __int128;

template <class T>
u64 cut(T value) {
  return static_cast<std::make_unsigned_t<T>>(value);
}

template <class T>
u64 widened(u64 raw) {
  return static_cast<u64>(static_cast<T>(raw));
}

template <class T>
i128 exact(u64 raw) {
  return static_cast<T>(raw);
}

template <class Make>
scalar_function for_type(type t, Make make) {
  switch (t) {
    case type::u16:
    case type::b16: return make.template operator()<std::uint16_t>();
    case type::s16: return make.template operator()<std::int16_t>();
    case type::u32:
    case type::b32: return make.template operator()<std::uint32_t>();
    case type::s32: return make.template operator()<std::int32_t>();
    case type::u64:
    case type::b64: return make.template operator()<std::uint64_t>();
    case type::s64: return make.template operator()<std::int64_t>();
    default: return nullptr;
  }
}

// In `expression`, a, b, c and d are the raw bits of the operands, A, B and C are the operands extended to 64 bits, and
// T is the type.
#define HPE_INTEGER(expression)                                                                                        \
  for_type(t, []<class T>() -> scalar_function {                                                                       \
    return []([[maybe_unused]] u64 a, [[maybe_unused]] u64 b, [[maybe_unused]] u64 c, [[maybe_unused]] u64 d) -> u64 { \
      [[maybe_unused]] const u64 A = widened<T>(a), B = widened<T>(b), C = widened<T>(c);                              \
      return cut(static_cast<T>(expression));                                                                          \
    };                                                                                                                 \
  })

template <class T>
T clamped(i128 value) {
  return static_cast<T>(std::clamp<i128>(value, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
}

template <class T>
T quotient(u64 a, u64 b) {
  const T x = static_cast<T>(a), y = static_cast<T>(b);
  if (y == 0) return static_cast<T>(~u64{0});
  if (std::is_signed_v<T> && y == static_cast<T>(-1)) return static_cast<T>(u64{0} - static_cast<u64>(x));
  return static_cast<T>(x / y);
}

template <class T>
T rest(u64 a, u64 b) {
  const T x = static_cast<T>(a), y = static_cast<T>(b);
  if (y == 0) return static_cast<T>(~u64{0});
  if (std::is_signed_v<T> && y == static_cast<T>(-1)) return 0;
  return static_cast<T>(x % y);
}

template <class T>
T high_half(u64 a, u64 b) {
  if constexpr (std::is_signed_v<T>) return static_cast<T>(exact<T>(a) * exact<T>(b) >> (8 * sizeof(T)));
  return static_cast<T>(static_cast<u128>(static_cast<T>(a)) * static_cast<T>(b) >> (8 * sizeof(T)));
}

template <class T>
u64 distance(u64 a, u64 b) {
  return static_cast<T>(a) < static_cast<T>(b) ? b - a : a - b;
}

scalar_function multiply(const instruction& i, bool add) {
  const type t = i.types[0];
  if (i.has(modifier::wide)) {
    if (bits_of(t) > 32) return nullptr;
    return for_type(t, []<class T>() -> scalar_function {
      return [](u64 a, u64 b, u64 c, u64) -> u64 {  // c is 0 for mul
        const u64 sum = widened<T>(a) * widened<T>(b) + c;
        return sizeof(T) == 4 ? sum : sum & 0xffffffffU;
      };
    });
  }
  if (i.has(modifier::hi)) {
    if (!add) return HPE_INTEGER(high_half<T>(a, b));
    if (i.has(modifier::sat)) return HPE_INTEGER(clamped<T>(i128{high_half<T>(a, b)} + exact<T>(c)));
    return HPE_INTEGER(static_cast<u64>(high_half<T>(a, b)) + C);
  }
  if (!i.has(modifier::lo)) return nullptr;
  return add ? HPE_INTEGER(A * B + C) : HPE_INTEGER(A * B);
}

// Multiplies the low 24 bits of the operands, sign-extended for signed types. .hi returns bits 16 to 47 of the product.
template <class T>
u64 product24(u64 a, u64 b, bool high) {
  const auto low24 = [](u64 v) {
    return std::is_signed_v<T> ? static_cast<std::int64_t>(v << 40) >> 40 : static_cast<std::int64_t>(v & 0xffffff);
  };
  return static_cast<u64>(low24(a) * low24(b)) >> (high ? 16 : 0);
}

template <class T>
T sum24(u64 a, u64 b, u64 c, u64 d) {
  const descriptor how = descriptor::unpack(d);
  const T product = static_cast<T>(product24<T>(a, b, how.high));
  if (how.sat) return clamped<T>(i128{product} + exact<T>(c));
  return static_cast<T>(static_cast<u64>(product) + c);
}

u64 dot4(u64 a, u64 b, u64 c, u64 d) {
  const bool a_signed = is_signed(descriptor::unpack(d).to), b_signed = is_signed(descriptor::unpack(d).from);
  const auto byte = [](u64 v, unsigned n, bool s) {
    const auto raw = static_cast<std::uint8_t>(v >> (8 * n));
    return s ? std::int64_t{static_cast<std::int8_t>(raw)} : std::int64_t{raw};
  };
  std::int64_t sum = static_cast<std::int32_t>(c);
  for (unsigned n = 0; n < 4; ++n) sum += byte(a, n, a_signed) * byte(b, n, b_signed);
  return static_cast<std::uint32_t>(sum);
}

u64 dot2(u64 a, u64 b, u64 c, u64 d) {
  const descriptor how = descriptor::unpack(d);
  std::int64_t sum = static_cast<std::int32_t>(c);
  for (unsigned n = 0; n < 2; ++n) {
    const auto half = static_cast<std::uint16_t>(a >> (16 * n));
    const auto byte = static_cast<std::uint8_t>(b >> (8 * (n + (how.high ? 2 : 0))));
    sum += (is_signed(how.to) ? std::int64_t{static_cast<std::int16_t>(half)} : std::int64_t{half}) *
           (is_signed(how.from) ? std::int64_t{static_cast<std::int8_t>(byte)} : std::int64_t{byte});
  }
  return static_cast<std::uint32_t>(sum);
}

scalar_function find_carry(const instruction& i) {
  const type t =
      bits_of(i.types[0]) == 32 ? type::u32 : type::u64;  // signed instructions have the carry of the unsigned sum
  switch (i.op) {
    case opcode::carry_out:
      return for_type(t, []<class T>() -> scalar_function {
        return [](u64 a, u64 b, u64 c, u64) -> u64 {
          return static_cast<u64>((static_cast<u128>(static_cast<std::make_unsigned_t<T>>(a)) +
                                   static_cast<std::make_unsigned_t<T>>(b) + c) >>
                                  (8 * sizeof(T)));
        };
      });
    case opcode::borrow_out:
      return for_type(t, []<class T>() -> scalar_function {
        return [](u64 a, u64 b, u64 c, u64) -> u64 {
          using U = std::make_unsigned_t<T>;
          return static_cast<u128>(static_cast<U>(a)) < static_cast<u128>(static_cast<U>(b)) + c ? 1 : 0;
        };
      });
    case opcode::add_carry: return HPE_INTEGER(a + b + c);
    case opcode::sub_borrow: return HPE_INTEGER(a - b - c);
    default: return nullptr;
  }
}

template <class T, class F>
u64 each_half(u64 a, u64 b, F f) {
  const auto part = [&](unsigned n) {
    return static_cast<u64>(static_cast<std::uint16_t>(f(static_cast<T>(a >> n), static_cast<T>(b >> n))));
  };
  return part(0) | part(16) << 16;
}

template <class T>
u64 add_halves(u64 a, u64 b, u64, u64) {
  return each_half<T>(a, b, [](T x, T y) { return x + y; });
}

template <class T>
u64 min_halves(u64 a, u64 b, u64, u64) {
  return each_half<T>(a, b, [](T x, T y) { return std::min(x, y); });
}

template <class T>
u64 max_halves(u64 a, u64 b, u64, u64) {
  return each_half<T>(a, b, [](T x, T y) { return std::max(x, y); });
}

scalar_function find_packed16(const instruction& i) {
  const bool s = i.types[0] == type::s16x2;
  if (!s && i.types[0] != type::u16x2) return nullptr;
  switch (i.op) {
    case opcode::add: return add_halves<std::uint16_t>;
    case opcode::min: return s ? min_halves<std::int16_t> : min_halves<std::uint16_t>;
    case opcode::max: return s ? max_halves<std::int16_t> : max_halves<std::uint16_t>;
    default: return nullptr;
  }
}

}  // namespace

scalar_function find_integer_scalar(const instruction& i) {
  const type t = i.types[0];
  const bool sat = i.has(modifier::sat);
  switch (i.op) {
    case opcode::add:
      if (const scalar_function packed = find_packed16(i)) return packed;
      return sat ? HPE_INTEGER(clamped<T>(exact<T>(a) + exact<T>(b))) : HPE_INTEGER(A + B);
    case opcode::sub: return sat ? HPE_INTEGER(clamped<T>(exact<T>(a) - exact<T>(b))) : HPE_INTEGER(A - B);
    case opcode::mul: return is_float(t) ? nullptr : multiply(i, false);
    case opcode::mad: return is_float(t) ? nullptr : multiply(i, true);
    case opcode::mul24:
      return i.has(modifier::hi) ? HPE_INTEGER(product24<T>(a, b, true)) : HPE_INTEGER(product24<T>(a, b, false));
    case opcode::mad24: return HPE_INTEGER(sum24<T>(a, b, c, d));
    case opcode::div: return HPE_INTEGER(quotient<T>(a, b));
    case opcode::rem: return HPE_INTEGER(rest<T>(a, b));
    case opcode::abs: return HPE_INTEGER(static_cast<std::int64_t>(A) < 0 ? u64{0} - A : A);
    case opcode::neg: return HPE_INTEGER(u64{0} - A);
    case opcode::min:
    case opcode::max: {
      if (const scalar_function packed = find_packed16(i)) return packed;
      const bool relu = i.has(modifier::relu);
      if (relu && t != type::s32) return nullptr;
      if (i.op == opcode::min)
        return relu ? HPE_INTEGER(std::max(T{0}, std::min(static_cast<T>(a), static_cast<T>(b))))
                    : HPE_INTEGER(std::min(static_cast<T>(a), static_cast<T>(b)));
      return relu ? HPE_INTEGER(std::max(T{0}, std::max(static_cast<T>(a), static_cast<T>(b))))
                  : HPE_INTEGER(std::max(static_cast<T>(a), static_cast<T>(b)));
    }
    case opcode::sad: return HPE_INTEGER(c + distance<T>(a, b));
    case opcode::dp4a: return dot4;
    case opcode::dp2a: return dot2;
    default: return find_carry(i);
  }
}

}  // namespace hpe::ptx
