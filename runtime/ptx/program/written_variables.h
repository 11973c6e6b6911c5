#pragma once

/// Finds the variables in global memory that the code of a program may write.

#include "runtime/ptx/program/program.h"

namespace hpe::ptx {

/// Sets symbol::may_be_written. A variable is only read if all functions use its address only to load from the
/// variable: they never store the address, pass it to a function or compare it with another address, and it is no
/// initial value.
void find_written_variables(program& p);

}  // namespace hpe::ptx
