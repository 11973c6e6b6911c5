#include "runtime/ptx/program/float_format.h"

#include <bit>
#include <cfenv>
#include <cmath>

namespace hpe::ptx {

namespace {

bool rounds_up(rounding round, bool negative, bool odd, bool half, bool more_than_zero) {
  // `half`: the discarded bits are at least half a unit in the last place. `more_than_zero`: a discarded bit after the
  // first one is set.
  switch (round) {
    case rounding::nearest_even: return half && (more_than_zero || odd);
    case rounding::nearest_away: return half;
    case rounding::toward_zero: return false;
    case rounding::down: return negative && (half || more_than_zero);
    case rounding::up: return !negative && (half || more_than_zero);
  }
  return false;
}

}  // namespace

std::uint64_t encode(double value, const float_format& format, rounding round) {
  const bool negative = std::signbit(value);
  const unsigned width = format.exponent_bits + format.mantissa_bits;
  const std::uint64_t sign = static_cast<std::uint64_t>(negative) << width;
  const std::uint64_t infinity = ((std::uint64_t{1} << format.exponent_bits) - 1) << format.mantissa_bits;
  const std::uint64_t beyond = format.has_infinity ? infinity : format.nan;  // the code after the largest finite value
  if (std::isnan(value)) return format.nan;
  if (std::isinf(value)) return sign | beyond;
  if (value == 0) return sign;
  int exponent = 0;
  const double fraction = std::frexp(std::fabs(value), &exponent);  // in [0.5, 1)
  const auto digits = static_cast<std::uint64_t>(std::ldexp(fraction, 53));
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  int biased = exponent - 1 + bias;
  int cut = 52 - static_cast<int>(format.mantissa_bits);
  if (biased < 1) {
    cut += 1 - biased;
    biased = 1;
  }
  std::uint64_t kept = 0;
  bool half = false, rest = true;
  if (cut <= 54) {
    kept = digits >> cut;
    half = (digits >> (cut - 1) & 1) != 0;
    rest = (digits & ((std::uint64_t{1} << (cut - 1)) - 1)) != 0;
  }
  if (rounds_up(round, negative, (kept & 1) != 0, half, rest)) ++kept;
  // If rounding carries out of the mantissa, the addition increments the exponent. That is correct also if a subnormal
  // value becomes normal.
  std::uint64_t bits = kept + (static_cast<std::uint64_t>(biased - 1) << format.mantissa_bits);
  if (bits >= beyond) {
    const bool stays =
        round == rounding::toward_zero || (round == rounding::down && !negative) || (round == rounding::up && negative);
    bits = stays ? beyond - 1 : beyond;
  }
  return sign | bits;
}

std::uint64_t encode_finite(double value, const float_format& format) {
  const unsigned width = format.exponent_bits + format.mantissa_bits;
  const std::uint64_t ones = (std::uint64_t{1} << width) - 1;
  const std::uint64_t largest = format.has_infinity ? ones - (std::uint64_t{1} << format.mantissa_bits) : ones - 1;
  const double limit = decode(largest, format);
  if (std::fabs(value) >= limit) return largest | static_cast<std::uint64_t>(std::signbit(value)) << width;
  return encode(value, format, rounding::nearest_even);
}

double decode(std::uint64_t bits, const float_format& format) {
  const unsigned width = format.exponent_bits + format.mantissa_bits;
  const bool negative = (bits >> width & 1) != 0;
  const std::uint64_t top = (std::uint64_t{1} << format.exponent_bits) - 1;
  const std::uint64_t exponent = bits >> format.mantissa_bits & top;
  const std::uint64_t mantissa = bits & ((std::uint64_t{1} << format.mantissa_bits) - 1);
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  const int scale = 1 - bias - static_cast<int>(format.mantissa_bits);
  double value = 0;
  if (exponent == top && (format.has_infinity || mantissa + 1 == std::uint64_t{1} << format.mantissa_bits)) {
    value = format.has_infinity && mantissa == 0 ? HUGE_VAL : std::nan("");
  } else if (exponent == 0) {
    value = std::ldexp(static_cast<double>(mantissa), scale);
  } else {
    value = std::ldexp(static_cast<double>(mantissa | std::uint64_t{1} << format.mantissa_bits),
                       scale + static_cast<int>(exponent) - 1);
  }
  return negative ? -value : value;
}

double add_to_odd(double a, double b) {
  const double sum = a + b;
  if (!std::isfinite(sum)) return sum;
  const double b_part = sum - a;
  const double error = (a - (sum - b_part)) + (b - b_part);
  const auto bits = std::bit_cast<std::uint64_t>(sum);
  if (error == 0 || (bits & 1) != 0) return sum;
  // The exact sum lies between `sum` and the next double in the direction of the error. `sum` is even, so that double
  // is odd.
  const bool away_from_zero = (error > 0) == (sum > 0);
  return std::bit_cast<double>(away_from_zero ? bits + 1 : bits - 1);
}

double integer_to_odd(bool negative, std::uint64_t magnitude) {
  std::uint64_t digits = magnitude;
  if (const int extra = static_cast<int>(std::bit_width(magnitude)) - 53; extra > 0) {
    const std::uint64_t rest = magnitude & ((std::uint64_t{1} << extra) - 1);
    digits = ((magnitude >> extra) | (rest != 0 ? 1 : 0)) << extra;
  }
  const auto value = static_cast<double>(digits);
  return negative ? -value : value;
}

rounding_scope::rounding_scope(rounding round) {
  if (round == rounding::nearest_even || round == rounding::nearest_away) return;
  before_ = std::fegetround();
  changed_ = true;
  std::fesetround(round == rounding::toward_zero ? FE_TOWARDZERO : round == rounding::down ? FE_DOWNWARD : FE_UPWARD);
}

rounding_scope::~rounding_scope() {
  if (changed_) std::fesetround(before_);
}

}  // namespace hpe::ptx
