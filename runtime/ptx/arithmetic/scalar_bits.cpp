// Logic, shifts and moves of bits. The result of a shift by the width or more is 0, or for right shifts of .s types
// only copies of the sign bit.

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <limits>
#include <type_traits>

#include "runtime/ptx/arithmetic/scalar.h"

namespace hpe::ptx {

namespace {

using u64 = std::uint64_t;
using u32 = std::uint32_t;

template <class Make>
scalar_function for_width(type t, Make make) {
  switch (bits_of(t)) {
    case 16: return make.template operator()<std::uint16_t>();
    case 32: return make.template operator()<std::uint32_t>();
    case 64: return make.template operator()<std::uint64_t>();
    default: return nullptr;
  }
}

// In `expression`, a, b, c and d are the operands, and U is the unsigned type of the same width.
#define HPE_BITS(expression)                                                                                           \
  for_width(t, []<class U>() -> scalar_function {                                                                      \
    return []([[maybe_unused]] u64 a, [[maybe_unused]] u64 b, [[maybe_unused]] u64 c, [[maybe_unused]] u64 d) -> u64 { \
      return static_cast<U>(expression);                                                                               \
    };                                                                                                                 \
  })

template <class U>
u64 shift_right(u64 a, u64 b) {
  const auto n = static_cast<u32>(b);
  return n >= 8 * sizeof(U) ? 0 : static_cast<U>(a) >> n;
}

template <class U>
u64 shift_right_signed(u64 a, u64 b) {
  const auto n = static_cast<u32>(b);
  const auto value = static_cast<std::int64_t>(static_cast<std::make_signed_t<U>>(a));
  return static_cast<u64>(value >> std::min<u32>(n, 63));
}

template <class U>
u64 reversed(u64 a) {
  U result = 0;
  for (unsigned n = 0; n < 8 * sizeof(U); ++n) result = static_cast<U>(result << 1 | (a >> n & 1));
  return result;
}

// Returns the position or length operand of bfe or bfi. In 32-bit instructions, only the low byte of the operand counts
// (PTX ISA, bfe). In 64-bit instructions, all 32 bits count, as on an H200.
template <class U>
u32 field_operand(u64 raw) {
  return sizeof(U) == 4 ? raw & 0xff : static_cast<u32>(raw);
}

// bfe: with_sign fills the bits above the field with copies of the field's sign bit.
template <class U>
u64 extract(u64 a, u64 b, u64 c, bool with_sign) {
  constexpr unsigned top = 8 * sizeof(U) - 1;
  const u32 position = field_operand<U>(b), length = field_operand<U>(c);
  const u64 last = u64{position} + length - 1;
  const bool sign = with_sign && length > 0 && (a >> std::min<u64>(last, top) & 1) != 0;
  U result = sign ? static_cast<U>(~U{0}) : U{0};
  for (unsigned n = 0; n <= top; ++n) {
    if (n >= length || u64{position} + n > top) break;
    const U bit = static_cast<U>(U{1} << n);
    result = (a >> (position + n) & 1) != 0 ? static_cast<U>(result | bit) : static_cast<U>(result & ~bit);
  }
  return result;
}

template <class U>
u64 inserted(u64 a, u64 b, u64 c, u64 d) {
  constexpr unsigned width = 8 * sizeof(U);
  const u32 position = field_operand<U>(c), length = field_operand<U>(d);
  if (position >= width || length == 0) return static_cast<U>(b);
  const unsigned room = std::min(length, width - position);
  const u64 ones = room == 64 ? ~u64{0} : (u64{1} << room) - 1;
  const u64 mask = ones << position;
  return static_cast<U>((b & ~mask) | (a << position & mask));
}

// bfind: returns the position of the highest bit that is 1 (for a negative number, of the highest bit that is 0).
// Returns all ones if there is no such bit.
template <class U, bool with_sign>
u64 find_top(u64 a, u64, u64, u64 d) {
  U value = static_cast<U>(a);
  if (with_sign && static_cast<std::make_signed_t<U>>(value) < 0) value = static_cast<U>(~value);
  if (value == 0) return ~u32{0};
  const auto top = static_cast<u32>(std::bit_width(value) - 1);
  return descriptor::unpack(d).high ? 8 * sizeof(U) - 1 - top : top;
}

u64 logic3(u64 a, u64 b, u64 c, u64 table) {
  u32 result = 0;
  for (unsigned n = 0; n < 8; ++n) {
    if ((table >> n & 1) == 0) continue;
    result |= ((n & 4) != 0 ? a : ~a) & ((n & 2) != 0 ? b : ~b) & ((n & 1) != 0 ? c : ~c);
  }
  return result;
}

u64 funnel(u64 a, u64 b, u64 c, u64 d) {
  const descriptor how = descriptor::unpack(d);
  const u32 n = how.wrap ? c & 31 : std::min<u32>(static_cast<u32>(c), 32);
  const u64 both = (b & 0xffffffffU) << 32 | (a & 0xffffffffU);
  return how.left ? static_cast<u32>(both << n >> 32) : static_cast<u32>(n == 32 ? both >> 32 : both >> n);
}

u64 bit_mask(u64 a, u64 b, u64, u64 d) {
  const bool wrap = descriptor::unpack(d).wrap;
  const u64 from = wrap ? a & 31 : std::min<u64>(a, 32);
  const u64 width = wrap ? b & 31 : std::min<u64>(b, 32);
  return static_cast<u32>(((u64{1} << width) - 1) << from);
}

u64 extended(u64 a, u64 b, u64, u64 d) {
  const descriptor how = descriptor::unpack(d);
  const u32 n = how.wrap ? b & 31 : static_cast<u32>(b);
  if (n == 0) return 0;
  if (n >= 32) return static_cast<u32>(a);
  return is_signed(how.to) ? static_cast<u32>(static_cast<std::int32_t>(static_cast<u32>(a) << (32 - n)) >> (32 - n))
                           : a & ((u64{1} << n) - 1);
}

u64 find_nth(u64 mask, u64 base, u64 offset, u64) {
  const auto steps = static_cast<std::int32_t>(offset);
  // as on an H200; the magnitude of this number does not fit into 32 bits
  if (steps == std::numeric_limits<std::int32_t>::min()) return 0;
  auto position = static_cast<std::int64_t>(base);
  if (steps == 0) return position < 32 && (mask >> position & 1) != 0 ? base : ~u32{0};
  for (std::int64_t count = std::abs(std::int64_t{steps}); position >= 0 && position<32; position += steps> 0 ? 1 : -1)
    if ((mask >> position & 1) != 0 && --count == 0) return static_cast<u64>(position);
  return ~u32{0};
}

u64 permuted(u64 a, u64 b, u64 selector) {
  const u64 both = (b & 0xffffffffU) << 32 | (a & 0xffffffffU);
  u64 result = 0;
  for (unsigned n = 0; n < 4; ++n) {
    const unsigned choice = selector >> (4 * n) & 15;
    u64 byte = both >> (8 * (choice & 7)) & 0xff;
    if ((choice & 8) != 0) byte = (byte & 0x80) != 0 ? 0xff : 0;
    result |= byte << (8 * n);
  }
  return result;
}

// A mode of prmt: the two low bits of c choose one of four fixed selectors (PTX ISA, prmt).
template <unsigned s0, unsigned s1, unsigned s2, unsigned s3>
u64 permuted_by_mode(u64 a, u64 b, u64 c, u64) {
  constexpr unsigned selectors[4] = {s0, s1, s2, s3};
  return permuted(a, b, selectors[c & 3]);
}

scalar_function find_permutation(const instruction& i) {
  if (i.has(modifier::f4e)) return permuted_by_mode<0x3210, 0x4321, 0x5432, 0x6543>;
  if (i.has(modifier::b4e)) return permuted_by_mode<0x5670, 0x6701, 0x7012, 0x0123>;
  if (i.has(modifier::rc8)) return permuted_by_mode<0x0000, 0x1111, 0x2222, 0x3333>;
  if (i.has(modifier::ecl)) return permuted_by_mode<0x3210, 0x3211, 0x3222, 0x3333>;
  if (i.has(modifier::ecr)) return permuted_by_mode<0x0000, 0x1110, 0x2210, 0x3210>;
  if (i.has(modifier::rc16)) return permuted_by_mode<0x1010, 0x3232, 0x1010, 0x3232>;
  return [](u64 a, u64 b, u64 c, u64) -> u64 { return permuted(a, b, c); };
}

scalar_function find_top_scalar(type t) {
  if (bits_of(t) == 32) return is_signed(t) ? find_top<std::uint32_t, true> : find_top<std::uint32_t, false>;
  return is_signed(t) ? find_top<std::uint64_t, true> : find_top<std::uint64_t, false>;
}

// The operands are the elements of a vector, the lowest element first.
scalar_function find_pack(type whole, std::size_t elements) {
  if (elements == 2 && bits_of(whole) == 64) return [](u64 a, u64 b, u64, u64) -> u64 { return a | b << 32; };
  if (elements == 2 && bits_of(whole) == 32) return [](u64 a, u64 b, u64, u64) -> u64 { return a | b << 16; };
  if (elements == 2 && bits_of(whole) == 16)
    return [](u64 a, u64 b, u64, u64) -> u64 { return (a & 0xff) | (b & 0xff) << 8; };
  if (elements == 4 && bits_of(whole) == 64)
    return [](u64 a, u64 b, u64 c, u64 d) -> u64 { return a | b << 16 | c << 32 | d << 48; };
  if (elements == 4 && bits_of(whole) == 32)
    return [](u64 a, u64 b, u64 c, u64 d) -> u64 {
      return (a & 0xff) | (b & 0xff) << 8 | (c & 0xff) << 16 | (d & 0xff) << 24;
    };
  return nullptr;
}

}  // namespace

scalar_function find_bit_scalar(const instruction& i) {
  const type t = i.types[0];
  if (t == type::pred) {
    switch (i.op) {
      case opcode::and_: return [](u64 a, u64 b, u64, u64) -> u64 { return a & b; };
      case opcode::or_: return [](u64 a, u64 b, u64, u64) -> u64 { return a | b; };
      case opcode::xor_: return [](u64 a, u64 b, u64, u64) -> u64 { return a ^ b; };
      case opcode::not_: return [](u64 a, u64, u64, u64) -> u64 { return a ^ 1; };
      case opcode::mov: return [](u64 a, u64, u64, u64) -> u64 { return a; };
      default: return nullptr;
    }
  }
  switch (i.op) {
    case opcode::and_: return HPE_BITS(a & b);
    case opcode::or_: return HPE_BITS(a | b);
    case opcode::xor_: return HPE_BITS(a ^ b);
    case opcode::not_: return HPE_BITS(~a);
    case opcode::cnot: return HPE_BITS(static_cast<U>(a) == 0 ? 1 : 0);
    case opcode::mov: return HPE_BITS(a);
    case opcode::selp: return HPE_BITS(c != 0 ? a : b);
    case opcode::shl: return HPE_BITS(static_cast<u32>(b) >= 8 * sizeof(U) ? 0 : a << static_cast<u32>(b));
    case opcode::shr: return is_signed(t) ? HPE_BITS(shift_right_signed<U>(a, b)) : HPE_BITS(shift_right<U>(a, b));
    case opcode::popc: return HPE_BITS(std::popcount(static_cast<U>(a)));
    case opcode::clz: return HPE_BITS(std::countl_zero(static_cast<U>(a)));
    case opcode::brev: return HPE_BITS(reversed<U>(a));
    case opcode::bfe: return is_signed(t) ? HPE_BITS(extract<U>(a, b, c, true)) : HPE_BITS(extract<U>(a, b, c, false));
    case opcode::bfi: return HPE_BITS(inserted<U>(a, b, c, d));
    case opcode::bfind: return find_top_scalar(t);
    case opcode::lop3: return logic3;
    case opcode::shf: return funnel;
    case opcode::bmsk: return bit_mask;
    case opcode::szext: return extended;
    case opcode::fns: return find_nth;
    case opcode::prmt: return find_permutation(i);
    case opcode::pack: return find_pack(t, i.sources.size());
    case opcode::unpack: return HPE_BITS(a >> static_cast<u32>(b));
    case opcode::half_select: return [](u64 a, u64 b, u64, u64) -> u64 { return a >> b & 1; };
    default: return nullptr;
  }
}

}  // namespace hpe::ptx
