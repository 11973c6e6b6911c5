#pragma once

/// Runs the blocks of a grid in the calling thread.

#include <optional>

#include "runtime/ptx/execution/block.h"

namespace hpe::ptx {

/// Blocks begin <= n < end of a grid, numbered with x fastest.
struct block_range {
  std::uint64_t begin = 0, end = 0;
};

/// The room for blocks that wait for each other.
struct block_room {
  std::uint32_t least = 32;  // as many blocks have room beside each other; more if they are small
  /// Called now and then while there is no room left, all blocks that have it wait in loops, and the grid has more.
  std::function<void(std::uint64_t resident)> crowded = {};
};

/// Runs these blocks one after the other. In a grid of clusters, runs the clusters whose first block is among these,
/// all blocks of a cluster at once. Blocks that do not end for some time, and may wait for others of the grid, let the
/// next ones run beside them: those of the range, then those that `more` gives. Several threads may run parts of one
/// grid, each with an engine of its own; `more` hands out the blocks that no thread has begun. If a trap stopped the
/// kernel, returns the trap. Exceptions of `more` pass through.
[[nodiscard]] std::optional<trap> run_blocks(engine& runs, const launch_configuration& configuration,
                                             block_range blocks,
                                             const std::function<std::optional<block_range>()>& more = {},
                                             const block_room& room = {});

/// Runs all blocks of the grid at once, in turns, for kernels whose blocks wait for each other. `engines` makes an
/// engine for each block.
[[nodiscard]] std::optional<trap> run_together(const std::function<std::shared_ptr<engine>()>& engines,
                                               const launch_configuration& given);

/// To be called by the owner's handler of SIGSEGV and SIGBUS with the address: if compiled code runs in the calling
/// thread, stops the kernel with a trap and does not return.
void land_page_fault(std::uint64_t address);

}  // namespace hpe::ptx
