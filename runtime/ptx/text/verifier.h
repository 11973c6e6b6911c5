#pragma once

/// Checks the operands of instructions: their number must agree with the table of instructions, and the widths of
/// registers must agree with the instructions' types.

#include "runtime/ptx/program/program.h"

namespace hpe::ptx {

/// Checks a function of the program. Throws HPE_ERROR_INVALID_ARGUMENT; the message names the line, the instruction and
/// the operand.
void verify(const program& p, const function& f);

}  // namespace hpe::ptx
