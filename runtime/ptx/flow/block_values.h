#pragma once

/// Registers that have the same value in all threads of a block.

#include <vector>

#include "runtime/ptx/flow/flow.h"

namespace hpe::ptx {

/// By register: whether all threads of a block that stand at the same barrier of the whole block have the same value.
/// None have if threads may take different ways from one meeting to another.
///
/// A register is such one if each write of it has operands that are, and no branch on other values decides whether
/// threads come to the write (the divergence analysis of Karrenberg and Hack, 2012, for a whole block).
[[nodiscard]] std::vector<bool> find_block_values(const std::vector<instruction>& code, std::size_t registers,
                                                  const control_flow& flow);

}  // namespace hpe::ptx
