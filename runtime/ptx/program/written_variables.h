#pragma once

/// Finds the variables in global memory that the code of a program may write.

#include "runtime/ptx/program/program.h"

namespace hpe::ptx {

/// Sets symbol::may_be_written. A variable counts as only read if all functions use its address for nothing but loads
/// from the variable: the address is neither stored, nor passed to a function, nor compared with another address, nor
/// used as an initial value.
void find_written_variables(program& p);

}  // namespace hpe::ptx
