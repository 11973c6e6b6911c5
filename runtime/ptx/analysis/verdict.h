#pragma once

/// Decides whether a kernel may be spread, that is, whether several devices may each run some of the blocks of one grid
/// at the same time.

#include <string>
#include <vector>

#include "runtime/ptx/analysis/access.h"

namespace hpe::ptx::analysis {

struct verdict {
  /// The reasons why the kernel must run on one device; empty if it may be spread.
  std::vector<std::string> obstacles;
  /// What a spread launch of the kernel needs, for example "2 fences of system scope".
  std::vector<std::string> needs;
  /// The numbers of instructions with device scope (.gpu or no scope), which get system scope (.sys) in a spread
  /// kernel.
  std::uint32_t atomics = 0, fences = 0, ordered_accesses = 0;
  /// Whether blocks count themselves with an atomic counter, for example so that only the last block continues.
  bool counts_blocks = false;

  [[nodiscard]] bool may_be_spread() const { return obstacles.empty(); }
};

/// A function that a kernel runs: the kernel itself or one that it calls.
struct analysed_function {
  const function* what = nullptr;
  kernel_walk* walk = nullptr;
  const std::vector<access>* accesses = nullptr;
};

/// Returns the verdict for a kernel. `functions`: first the kernel, then all functions that it calls.
[[nodiscard]] verdict judge(const program& p, const std::vector<analysed_function>& functions);

}  // namespace hpe::ptx::analysis
