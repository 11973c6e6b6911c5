#pragma once

#include "runtime/ptx/program/ptx_program.h"

namespace hpe::ptx {

/// Replaces each register that always contains the same constant (a number, or the address of a variable or of local
/// memory) by this constant in the operands of instructions. Calls keep their registers; meetings (call_graph.h) keep
/// registers that contain addresses. CUDA's compilers first load constants into registers. After the replacement, hpe
/// can recognise shuffles and votes of all lanes by their constant masks, and constants occupy no registers.
void fold_constants(function& f);

}  // namespace hpe::ptx
