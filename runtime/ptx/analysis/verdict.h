#pragma once

/// Whether the blocks of one grid may run on several devices, each device some of them at the same time.

#include <string>
#include <vector>

#include "runtime/ptx/analysis/access.h"

namespace hpe::ptx::analysis {

struct verdict {
  /// Why the kernel has to run on one device; empty if it may be spread.
  std::vector<std::string> obstacles;
  /// What a spread kernel needs.
  std::vector<std::string> needs;
  /// Instructions of device scope (.gpu or no scope) that must become .sys, for code that spreads the kernel.
  std::uint32_t atomics = 0, fences = 0, ordered_accesses = 0;
  /// The last block that finishes, found by an atomic counter, goes on alone.
  bool counts_blocks = false;

  [[nodiscard]] bool may_be_spread() const { return obstacles.empty(); }
};

/// A function that a kernel runs: the kernel itself or one that it calls.
struct analysed_function {
  const function* what = nullptr;
  kernel_walk* walk = nullptr;
  const std::vector<access>* accesses = nullptr;
};

/// `functions` are the kernel, first, and all that it calls.
[[nodiscard]] verdict judge(const program& p, const std::vector<analysed_function>& functions);

}  // namespace hpe::ptx::analysis
