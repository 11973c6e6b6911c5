#include "runtime/ptx/arithmetic/scalar.h"

namespace hpe::ptx {

namespace {

rounding rounding_of(const instruction& i) {
  if (i.has(modifier::rz) || i.has(modifier::rzi)) return rounding::toward_zero;
  if (i.has(modifier::rm) || i.has(modifier::rmi)) return rounding::down;
  if (i.has(modifier::rp) || i.has(modifier::rpi)) return rounding::up;
  if (i.has(modifier::rna)) return rounding::nearest_away;
  return rounding::nearest_even;
}

// Returns the comparison operator of set or setp. For setp.eq.and, the result is "eq", because "and" is not a
// comparison.
modifier comparison_of(const instruction& i) {
  using enum modifier;
  const modifier m = i.modifiers.one_of(eq, ne, lt, le, gt, ge, ls, hs, equ, neu, ltu, leu, gtu, geu, num, nan, finite,
                                        infinite, number, notanumber, normal, subnormal);
  if (m != count) return m;
  return i.modifiers.one_of(lo, hi);
}

}  // namespace

std::uint64_t descriptor::pack() const {
  const auto bit = [](bool b, unsigned at) { return static_cast<std::uint64_t>(b) << at; };
  return static_cast<std::uint64_t>(round) | bit(to_integral, 4) | bit(ftz, 5) | bit(sat, 6) | bit(relu, 7) |
         bit(nan, 8) | bit(xorsign, 9) | bit(left, 10) | bit(wrap, 11) | bit(high, 12) | bit(accumulate, 13) |
         static_cast<std::uint64_t>(compare) << 16 | static_cast<std::uint64_t>(to) << 32 |
         static_cast<std::uint64_t>(from) << 40 | static_cast<std::uint64_t>(third) << 48;
}

descriptor descriptor::unpack(std::uint64_t bits) {
  const auto bit = [bits](unsigned at) { return (bits >> at & 1) != 0; };
  descriptor d;
  d.round = static_cast<rounding>(bits & 15);
  d.to_integral = bit(4);
  d.ftz = bit(5);
  d.sat = bit(6);
  d.relu = bit(7);
  d.nan = bit(8);
  d.xorsign = bit(9);
  d.left = bit(10);
  d.wrap = bit(11);
  d.high = bit(12);
  d.accumulate = bit(13);
  d.compare = static_cast<modifier>(bits >> 16 & 0xffff);
  d.to = static_cast<type>(bits >> 32 & 0xff);
  d.from = static_cast<type>(bits >> 40 & 0xff);
  d.third = static_cast<type>(bits >> 48 & 0xff);
  return d;
}

descriptor describe(const instruction& i) {
  descriptor d;
  d.round = rounding_of(i);
  d.to_integral = i.modifiers.one_of(modifier::rni, modifier::rzi, modifier::rmi, modifier::rpi) != modifier::count;
  d.ftz = i.has(modifier::ftz);
  d.sat = i.has(modifier::sat) || i.has(modifier::satfinite);
  d.relu = i.has(modifier::relu);
  d.nan = i.has(modifier::nan_);
  d.xorsign = i.has(modifier::xorsign);
  d.left = i.has(modifier::l);
  d.wrap = i.has(modifier::wrap);
  d.high = i.has(modifier::hi) || i.has(modifier::shiftamt);
  d.accumulate = i.has(modifier::op_add);
  d.compare = comparison_of(i);
  d.to = i.types[0];
  d.from = i.second_type();
  d.third = i.types[2] == type::none ? d.from : i.types[2];
  return d;
}

scalar_function find_scalar(const instruction& i) {
  for (const auto find : {find_integer_scalar, find_bit_scalar, find_video_scalar, find_float_scalar, find_half_scalar,
                          find_compare_scalar, find_conversion_scalar})
    if (const scalar_function found = find(i)) return found;
  return nullptr;
}

bool set_scalar(instruction& i) {
  i.scalar = find_scalar(i);
  i.description = describe(i).pack();
  return i.scalar != nullptr;
}

}  // namespace hpe::ptx
