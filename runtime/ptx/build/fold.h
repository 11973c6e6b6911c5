#pragma once

#include "runtime/ptx/program/program.h"

namespace hpe::ptx {

/// Replaces each register that always contains the same constant (a number or the address of a variable) by this
/// constant. CUDA's compilers load constants into registers first; after the replacement, hpe recognises masks of all
/// lanes, and constants occupy no registers.
void fold_constants(function& f);

}  // namespace hpe::ptx
