#pragma once

/// Decides whether the blocks of one grid may run on several devices at the same time, some of the blocks on each
/// device.

#include <string>
#include <vector>

#include "runtime/ptx/analysis/access.h"

namespace hpe::ptx::analysis {

struct verdict {
  /// Why the kernel has to run on one device; empty if it may be spread.
  std::vector<std::string> obstacles;
  /// The requirements for spreading the kernel, one string for each.
  std::vector<std::string> needs;
  /// The numbers of instructions of device scope (.gpu or no scope) that become .sys instructions in a spread kernel.
  std::uint32_t atomics = 0, fences = 0, ordered_accesses = 0;
  /// Whether blocks use an atomic counter to find out which block finishes last, and only this block then continues.
  bool counts_blocks = false;

  [[nodiscard]] bool may_be_spread() const { return obstacles.empty(); }
};

/// A function that a kernel runs: the kernel itself or one that it calls.
struct analysed_function {
  const function* what = nullptr;
  kernel_walk* walk = nullptr;
  const std::vector<access>* accesses = nullptr;
};

/// `functions`: the kernel first, then all functions that it calls.
[[nodiscard]] verdict judge(const program& p, const std::vector<analysed_function>& functions);

}  // namespace hpe::ptx::analysis
