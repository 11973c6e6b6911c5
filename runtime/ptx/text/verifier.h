#pragma once

/// Checks that operands match their instructions: their number by the table, the width of registers by the types.

#include "runtime/ptx/program/program.h"

namespace hpe::ptx {

/// Throws HPE_ERROR_INVALID_ARGUMENT with the line, the instruction and the operand.
void verify(const program& p);

}  // namespace hpe::ptx
