#pragma once

#include "runtime/ptx/program/program.h"

namespace hpe::ptx {

/// The function that executes an atom or red instruction, atomically among all threads of the machine and sequentially
/// consistent, whatever order and scope the instruction asks for. Null if the type has no such operation.
[[nodiscard]] atomic_function find_atomic(const instruction& i);

}  // namespace hpe::ptx
