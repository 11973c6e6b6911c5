#pragma once

#include "runtime/ptx/program/program.h"

namespace hpe::ptx {

/// The function that executes an atom or red instruction. Whatever the instruction's order and scope, the operation is
/// atomic among all threads of the machine and sequentially consistent. Null if the instruction's type does not support
/// the operation.
[[nodiscard]] atomic_function find_atomic(const instruction& i);

}  // namespace hpe::ptx
