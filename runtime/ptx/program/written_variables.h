#pragma once

/// Finds the variables in global memory that the code of a program may write.

#include "runtime/ptx/program/program.h"

namespace hpe::ptx {

/// Sets symbol::may_be_written. A variable counts as only read if every function uses its address only to load from the
/// variable (it never stores the address, passes it to a function, or compares it with anything but an address inside
/// the variable), and no variable's initial value contains the address.
void find_written_variables(program& p);

}  // namespace hpe::ptx
