#pragma once

#include "runtime/ptx/program/program.h"

namespace hpe::ptx {

/// Replaces registers that only ever hold one constant (a number or the address of a variable) by that constant,
/// because CUDA's compilers load constants into registers first. A mask of all lanes is then recognised, and known
/// values need no register.
void fold_constants(function& f);

}  // namespace hpe::ptx
