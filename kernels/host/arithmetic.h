#pragma once

/// Arithmetic of the bodies for soft devices. The source code of the bodies determines each rounding and the order of
/// operations: the compiler does not contract expressions, and the bodies write fused operations explicitly. HPE_FUSED
/// is 1 if a * b + c is a fused operation with one rounding, else 0.

namespace {

inline constexpr bool fused = HPE_FUSED;

// Returns a * b + c.
inline float multiply_add(float a, float b, float c) {
  if constexpr (fused) return __builtin_fmaf(a, b, c);
  return a * b + c;
}
inline double multiply_add(double a, double b, double c) {
  if constexpr (fused) return __builtin_fma(a, b, c);
  return a * b + c;
}

}  // namespace
