#pragma once

#include "runtime/ptx/program.h"

namespace hpe::ptx {

/// The function of an atom or red, atomic among all threads of the machine and sequentially consistent, whatever order
/// and scope the instruction asks for. Null where the type has no such operation.
[[nodiscard]] atomic_function find_atomic(const instruction& i);

}  // namespace hpe::ptx
