#pragma once

/// Finds paths through a region of code on which a thread does not access memory. For example, in `if (t < s) { ... }
/// __syncthreads();`, a thread with t >= s takes such a path.

#include <optional>
#include <vector>

#include "runtime/ptx/flow/lanes.h"

namespace hpe::ptx {

/// Finds the basic blocks that all threads reach by the same path, and the paths out of the region that begin at these
/// blocks.
class idle_ways {
 public:
  /// A path that leaves the region. Threads on the path write only registers, whose values may differ between threads.
  struct way {
    std::vector<std::uint32_t>
        blocks;            // the last block ends with a barrier of all threads of the thread block, or with an exit
    register_set written;  // registers written between the beginning of the region and the end of the path
  };

  /// `region` must begin after a barrier of the whole block of threads. `has_block_value`: see find_block_values. All
  /// arguments must outlive the object.
  idle_ways(const std::vector<instruction>& code, const control_flow& flow, const std::vector<bool>& has_block_value,
            const lane_region& region);

  /// Returns the path of the threads that branch from `block` to `to`; empty if these threads may follow different
  /// paths, or if their path is not a `way` or has more than eight blocks.
  [[nodiscard]] std::optional<way> behind(std::uint32_t block, std::uint32_t to) const;

 private:
  void find_common();
  [[nodiscard]] bool is_common_branch(std::uint32_t block) const;
  [[nodiscard]] std::optional<std::uint32_t> only_successor(std::uint32_t block) const;

  const std::vector<instruction>& code_;
  const control_flow& flow_;
  const std::vector<bool>& has_block_value_;
  const lane_region& region_;
  std::vector<bool> only_computes_;  // by block: all instructions, except a branch or the end of the region as the last
                                     // one, write only registers
  std::vector<bool>
      is_common_;         // by block: all threads reach the block by the same path, on which they write only registers
  register_set written_;  // the registers that the blocks of is_common_ write
};

}  // namespace hpe::ptx
