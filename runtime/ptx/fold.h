#pragma once

#include "runtime/ptx/program.h"

namespace hpe::ptx {

/// Puts numbers and addresses of variables in place of the registers that hold nothing else, as compilers of CUDA load
/// them into registers first. So a mask of all lanes is seen to be one, and nothing is kept that can be known.
void fold_constants(function& f);

}  // namespace hpe::ptx
