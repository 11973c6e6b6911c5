#pragma once

/// Runs the blocks of a grid in the calling thread.

#include <optional>

#include "runtime/ptx/execution/block.h"
#include "runtime/ptx/execution/interpreter.h"

namespace hpe::ptx {

/// Blocks begin <= n < end of a grid. Blocks are numbered along x first, then along y, then along z.
struct block_range {
  std::uint64_t begin = 0, end = 0;
};

/// Limits the number of blocks that are resident at the same time. Resident blocks can wait for each other.
struct block_room {
  std::uint32_t least = 32;  // the limit in blocks; larger if the blocks are small
  /// Called repeatedly while the limit is reached, no resident block ends, and the grid has further blocks.
  std::function<void(std::uint64_t resident)> crowded = {};
};

/// Lets blocks leave an interpreter (runtime/ptx/flow/handover.h).
struct handover {
  const work_meter& meter;
  /// Returns a new engine that continues blocks which the interpreter has begun; null if they stay in the interpreter.
  std::function<std::shared_ptr<execution_engine>()> successor;
};

/// Runs `blocks` one after the other. In a grid of clusters, runs the clusters whose first block is in the range; the
/// blocks of a cluster take turns. Blocks that do not end for some time may be waiting for other blocks of the grid.
/// Then further blocks take turns with them: first the next blocks of the range, then the blocks that `more` returns.
/// Several CPU threads may run parts of one grid, each with its own engine; `more` must then return blocks that no CPU
/// thread has begun. Returns the trap if a trap stopped the kernel, otherwise nothing. Does not catch exceptions of
/// `more`.
[[nodiscard]] std::optional<trap> run_blocks(execution_engine& runs, const launch_configuration& configuration,
                                             block_range blocks,
                                             const std::function<std::optional<block_range>()>& more = {},
                                             const block_room& room = {});

/// Like run_blocks, with an interpreter, until the meter is used up. Then blocks that have begun continue with other
/// engines, and run_until_handover removes from `blocks` the blocks that have begun.
[[nodiscard]] std::optional<trap> run_until_handover(interpreter& runs, const launch_configuration& configuration,
                                                     block_range& blocks,
                                                     const std::function<std::optional<block_range>()>& more,
                                                     const block_room& room, const handover& leave);

/// Runs all blocks of the grid in turns, for kernels whose blocks wait for each other. Calls engines() once for each
/// block; each call must return a new engine. Returns like run_blocks.
[[nodiscard]] std::optional<trap> run_together(const std::function<std::shared_ptr<execution_engine>()>& engines,
                                               const launch_configuration& given);

/// Stands for a non-canonical address that the handler of the fault does not know, because the address is in a vector
/// register.
inline constexpr std::uint64_t unknown_address = std::uint64_t{1} << 63;

/// A handler of SIGSEGV and SIGBUS must call this function with the faulting address. If the calling thread runs
/// compiled code, the function stops the kernel with a trap and does not return.
void land_page_fault(std::uint64_t address);

}  // namespace hpe::ptx
