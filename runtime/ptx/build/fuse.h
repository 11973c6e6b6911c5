#pragma once

#include "runtime/ptx/program/ptx_program.h"

namespace hpe::ptx {

/// Replaces each sum or difference of a product by a fused multiplication and addition, as NVIDIA's assembler does: PTX
/// allows the replacement if neither instruction says its rounding. nvcc relies on it: for a - b * c, nvcc writes mul
/// and sub, so on GPUs the result is rounded once. If other instructions than sums read the product, the function
/// replaces nothing, as NVIDIA's assembler. The branch targets of `f` must be positions.
void fuse_products(function& f);

}  // namespace hpe::ptx
