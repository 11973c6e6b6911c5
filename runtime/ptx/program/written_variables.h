#pragma once

/// Finds the variables in global memory that the code of a program may write.

#include "runtime/ptx/program/ptx_program.h"

namespace hpe::ptx {

/// Sets symbol::may_be_written of each variable. The flag is false only if no initial value contains the variable's
/// address and functions use the address only for loads: they do not store the address, pass it to a function, or
/// compare it with anything but an address inside the variable.
void find_written_variables(program& p);

}  // namespace hpe::ptx
