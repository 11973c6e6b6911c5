#pragma once

#include "runtime/ptx/program/ptx_program.h"

namespace hpe::ptx {

/// Returns the function that executes an atom or red instruction. For every memory order and scope, the operation is
/// sequentially consistent and atomic among all threads of the machine. Returns null if the operation does not support
/// the instruction's type.
[[nodiscard]] atomic_function find_atomic(const instruction& i);

}  // namespace hpe::ptx
