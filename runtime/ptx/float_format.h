#pragma once

/// Binary floating point formats as bits, and the conversions between them that the processor does not have.

#include <cstdint>

#include "runtime/ptx/scalar.h"

namespace hpe::ptx {

/// A binary format with an implicit leading bit.
struct float_format {
  unsigned exponent_bits;
  unsigned mantissa_bits;
  std::uint64_t nan;  // what a NaN becomes
};
inline constexpr float_format half_format{5, 10, 0x7fff};
inline constexpr float_format brain_format{8, 7, 0x7fff};
inline constexpr float_format tensor_format{8, 10, 0x3ffff};  // tf32 before its 13 low bits

/// The nearest value of the format in the given direction. Overflow gives infinity, or the largest value where the
/// direction forbids infinity. A NaN becomes the format's.
[[nodiscard]] std::uint64_t encode(double value, const float_format& format, rounding round);
[[nodiscard]] double decode(std::uint64_t bits, const float_format& format);

/// a + b, and a * b + c, to the nearest double that is odd where the result is not exact: rounding that once more to a
/// format with at most 50 bits gives what rounding the exact result would have given (Boldo and Melquiond, 2008).
[[nodiscard]] double add_to_odd(double a, double b);
/// An integer to a double in the same manner.
[[nodiscard]] double integer_to_odd(bool negative, std::uint64_t magnitude);

/// Calls the operation with the processor's rounding mode set.
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
