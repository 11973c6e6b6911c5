#pragma once

/// Registers that have the same value in all threads of a block.

#include <vector>

#include "runtime/ptx/flow/flow.h"

namespace hpe::ptx {

/// Returns, for each register, whether all threads of a block that wait at the same barrier of the whole block have the
/// same value in the register. Returns false for all registers if threads may take different paths from one meeting
/// (call_graph.h) to another, or if the code has no meeting or more than 4096 blocks.
///
/// A register has the same value in all threads if all instructions that write the register read only such registers,
/// and if only branches on such registers decide whether threads reach these instructions (the divergence analysis of
/// Karrenberg and Hack, 2012, for a whole block).
[[nodiscard]] std::vector<bool> find_block_values(const std::vector<instruction>& code, std::size_t registers,
                                                  const control_flow& flow);

}  // namespace hpe::ptx
