#pragma once

/// Ways through a region on which a thread only computes: `if (t < s) { ... } __syncthreads();` for a thread beyond s.

#include <optional>
#include <vector>

#include "runtime/ptx/flow/lanes.h"

namespace hpe::ptx {

/// Finds blocks to whose end all threads come on the same way, and the ways from there on which threads leave.
class idle_ways {
 public:
  /// A way that leaves the region. Its threads write only registers, whose values all threads on the way have in
  /// common.
  struct way {
    std::vector<std::uint32_t> blocks;  // the last one ends with a barrier of the whole block of threads, or an exit
    register_set written;               // from the beginning of the region to the end of the way
  };

  /// region: begins behind a barrier of the whole block of threads. has_block_value: see find_block_values. All must
  /// outlive the object.
  idle_ways(const std::vector<instruction>& code, const control_flow& flow, const std::vector<bool>& has_block_value,
            const lane_region& region);

  /// The way of threads that go on from the end of a block of the region to another block; none if there is no such
  /// way.
  [[nodiscard]] std::optional<way> behind(std::uint32_t block, std::uint32_t to) const;

 private:
  void find_common();
  [[nodiscard]] bool is_common_branch(std::uint32_t block) const;
  [[nodiscard]] std::optional<std::uint32_t> only_successor(std::uint32_t block) const;

  const std::vector<instruction>& code_;
  const control_flow& flow_;
  const std::vector<bool>& has_block_value_;
  const lane_region& region_;
  std::vector<bool> only_computes_;  // by block: but for its end
  std::vector<bool> is_common_;      // by block: all threads come to it, and do nothing but compute before
  register_set written_;             // by common blocks
};

}  // namespace hpe::ptx
