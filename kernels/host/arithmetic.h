#pragma once

/// Arithmetic for the bodies for soft devices. The source text of the bodies determines each rounding and the order of
/// operations: contraction is off, and fused operations are written as such. HPE_FUSED: a * b + c is one operation.

namespace {

inline constexpr bool fused = HPE_FUSED;

// a * b + c
inline float multiply_add(float a, float b, float c) {
  if constexpr (fused) return __builtin_fmaf(a, b, c);
  return a * b + c;
}
inline double multiply_add(double a, double b, double c) {
  if constexpr (fused) return __builtin_fma(a, b, c);
  return a * b + c;
}

}  // namespace
