#pragma once

/// Checks the operands of instructions: their number must be the number in the instruction table, and the types of
/// registers must agree with the types of the instructions.

#include "runtime/ptx/program/ptx_program.h"

namespace hpe::ptx {

/// Checks a function of the program. Throws HPE_ERROR_INVALID_ARGUMENT; the message names the line, the instruction and
/// the operand.
void verify(const program& p, const function& f);

}  // namespace hpe::ptx
