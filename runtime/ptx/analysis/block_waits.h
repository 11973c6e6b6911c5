#pragma once

/// Finds loops in which threads wait for another block of their grid.
///
/// A loop waits for another block if its end depends on a value in global memory that each iteration reads again and
/// that another block may write during the loop. The value may reach the end of the loop through registers, votes and
/// barriers, and through memory: one thread stores the value, and the other threads of its block load it.

#include <optional>
#include <vector>

#include "runtime/ptx/analysis/access.h"

namespace hpe::ptx::analysis {

/// If the loop waits for another block, returns the position of the instruction that reads the value from the other
/// block; otherwise returns nothing. `accesses`: the accesses in the function's own code (find_accesses).
[[nodiscard]] std::optional<std::uint32_t> find_wait(const program& p, const function& f, kernel_walk& walk,
                                                     const std::vector<access>& accesses, std::uint32_t loop);

[[nodiscard]] bool is_shared(const instruction& i);
[[nodiscard]] bool has_block_scope(const instruction& i);
/// Whether a load or store has an order (.relaxed, .acquire or .release).
[[nodiscard]] bool is_ordered(const instruction& i);
/// Whether the instruction is a fence that orders memory accesses for threads of other blocks.
[[nodiscard]] bool reaches_device(const instruction& i);

}  // namespace hpe::ptx::analysis
