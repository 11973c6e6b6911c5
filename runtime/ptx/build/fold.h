#pragma once

#include "runtime/ptx/program/program.h"

namespace hpe::ptx {

/// Replaces each register that always holds the same constant (a number or the address of a variable) by that constant,
/// because CUDA's compilers load constants into registers first. As a result, hpe recognises masks of all lanes, and
/// constants do not occupy registers.
void fold_constants(function& f);

}  // namespace hpe::ptx
