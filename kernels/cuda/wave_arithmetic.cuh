#pragma once

/// The operations of a wave step at one point. Their order is that of kernels/host/wave_bodies.h, so that GPUs and
/// hosts with fused multiply-adds compute the same bits. Every fused operation is written explicitly; the compiler
/// fuses no other operations.

#include "kernels/wave_parameters.h"

namespace hpe::kernels::cuda {

__device__ inline float add(float a, float b) { return __fadd_rn(a, b); }
__device__ inline double add(double a, double b) { return __dadd_rn(a, b); }
__device__ inline float multiply(float a, float b) { return __fmul_rn(a, b); }
__device__ inline double multiply(double a, double b) { return __dmul_rn(a, b); }
__device__ inline float multiply_add(float a, float b, float c) { return __fmaf_rn(a, b, c); }
__device__ inline double multiply_add(double a, double b, double c) { return __fma_rn(a, b, c); }

/// Returns the value of a point after the step. before: the value of the point one step ago; twice: 2 taper_x taper_y.
template <class T>
__device__ T stepped(T here, T before, T speed, T laplacian, T twice, T taper_z) {
  const T damping = multiply_add(twice, taper_z, T(-1));
  return multiply_add(speed, laplacian, multiply_add(damping, add(here, -before), here));
}

}  // namespace hpe::kernels::cuda
