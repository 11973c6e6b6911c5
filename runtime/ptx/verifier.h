#pragma once

/// Checks that operands fit their instructions: as many as the table says, registers as wide as the types say.

#include "runtime/ptx/program.h"

namespace hpe::ptx {

/// Throws HPE_ERROR_INVALID_ARGUMENT with the line, the instruction and the operand.
void verify(const program& p);

}  // namespace hpe::ptx
