#pragma once

/// Binary floating-point formats, and the conversions between these formats for which the CPU has no instruction.

#include <cstdint>

#include "runtime/ptx/arithmetic/scalar.h"

namespace hpe::ptx {

/// A binary format with an implicit leading bit.
struct float_format {
  unsigned exponent_bits;
  unsigned mantissa_bits;
  std::uint64_t nan;         // the bits of the canonical NaN
  bool has_infinity = true;  // false: a value is NaN only if all its exponent and mantissa bits are 1
};
inline constexpr float_format half_format{5, 10, 0x7fff};
inline constexpr float_format brain_format{8, 7, 0x7fff};
inline constexpr float_format tensor_format{8, 10, 0x3ffff};  // tf32: the upper 19 bits of an f32
inline constexpr float_format e4m3_format{4, 3, 0x7f, false};
inline constexpr float_format e5m2_format{5, 2, 0x7f};

/// Rounds a value to the format in the given direction. If the value overflows, returns infinity (NaN in a format
/// without infinity), or the largest finite value if `round` rounds the value towards zero. For a NaN, returns the
/// format's canonical NaN.
[[nodiscard]] std::uint64_t encode(double value, const float_format& format, rounding round);
/// Like encode with rounding to nearest, but if the value overflows or is infinite, returns the largest finite value
/// with the sign of `value`.
[[nodiscard]] std::uint64_t encode_finite(double value, const float_format& format);
[[nodiscard]] double decode(std::uint64_t bits, const float_format& format);

/// Returns a + b, rounded to odd: if the sum is inexact, the result is the neighbouring double with an odd mantissa.
/// Rounding this result to a format with at most 50 bits is the same as rounding the exact sum to that format (Boldo
/// and Melquiond, 2008).
[[nodiscard]] double add_to_odd(double a, double b);
/// Converts an integer to double, rounded to odd.
[[nodiscard]] double integer_to_odd(bool negative, std::uint64_t magnitude);

/// Sets the CPU's rounding mode in the constructor, and restores the previous mode in the destructor.
class rounding_scope {
 public:
  explicit rounding_scope(rounding round);
  rounding_scope(const rounding_scope&) = delete;
  rounding_scope& operator=(const rounding_scope&) = delete;
  ~rounding_scope();

 private:
  int before_ = 0;
  bool changed_ = false;
};

}  // namespace hpe::ptx
