#pragma once

/// Runs the blocks of a grid in the calling thread.

#include <optional>

#include "runtime/ptx/block.h"

namespace hpe::ptx {

/// Runs blocks first <= n < last, numbered with x fastest, one after the other. In a grid of clusters, runs the
/// clusters whose first block is among these, all blocks of a cluster at once. Several threads may run parts of one
/// grid, each with an engine of its own. If a trap stopped the kernel, returns the trap.
[[nodiscard]] std::optional<trap> run_blocks(engine& runs, const launch_configuration& configuration,
                                             std::uint64_t first, std::uint64_t last);

/// Runs all blocks of the grid at once, in turns, for kernels whose blocks wait for each other. `engines` makes an
/// engine for each block.
[[nodiscard]] std::optional<trap> run_together(const std::function<std::shared_ptr<engine>()>& engines,
                                               const launch_configuration& given);

/// To be called by the owner's handler of SIGSEGV and SIGBUS with the address: if compiled code runs in the calling
/// thread, stops the kernel with a trap and does not return.
void land_page_fault(std::uint64_t address);

}  // namespace hpe::ptx
