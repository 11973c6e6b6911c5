#pragma once

/// Estimates how many times a thread repeats the loops of a kernel, and how many threads run code that depends on flags
/// in memory.

#include "runtime/ptx/analysis/bounds.h"
#include "runtime/ptx/analysis/evaluator.h"

namespace hpe::spread {

/// Returns, for each basic block of the kernel, an estimate of the fraction of threads that run the block. A flag is a
/// value in memory, such as the mark of the nodes at the frontier of a graph search, that the kernel compares with a
/// constant. The estimate is share_with_flag for a block that depends on flags, and 1 for any other block.
[[nodiscard]] std::vector<double> shares_of_threads(const ptx::analysis::kernel_analysis& k);
inline constexpr double share_with_flag = 1.0 / 16;

class loop_counts {
 public:
  /// The analysis must outlive the object.
  explicit loop_counts(const ptx::analysis::kernel_analysis& k);

  /// Returns the value of a loop's counter in the last iteration; -1 if the loop does not run; `assumed` if the value
  /// depends on data in memory or exceeds 2^40. The evaluator's place must contain the counters of the outer loops.
  /// `counter` is the loop's own counter in that place; the function changes it.
  [[nodiscard]] std::int64_t last_of(std::uint32_t loop, ptx::analysis::evaluator& numbers,
                                     std::int64_t& counter) const;
  /// Returns an upper bound of the loop's counter for all threads of the blocks of `all`; nothing if no bound is known.
  /// `numbers` must not guess (evaluator::guess_choices); its place may be any of these threads. `counter`: see
  /// last_of.
  [[nodiscard]] std::optional<std::int64_t> most_of(std::uint32_t loop, ptx::analysis::bounds& all,
                                                    ptx::analysis::evaluator& numbers, std::int64_t& counter) const;
  /// Returns whether last_of has the same result for all threads of a launch.
  [[nodiscard]] bool is_uniform(std::uint32_t loop) const { return uniform_[loop]; }
  /// Returns the loops in an order in which each loop follows all loops that contain it and all loops that end before
  /// it.
  [[nodiscard]] const std::vector<std::uint32_t>& order() const { return order_; }

  static constexpr std::int64_t assumed = 15;

 private:
  struct way_out {
    ptx::analysis::expression_id predicate = 0;
    bool leaves_if = true;
    /// The expressions of two values; the loop ends when they are equal.
    struct pair {
      ptx::analysis::expression_id left = 0, right = 0;
    };
    std::optional<pair> until_equal;
    std::vector<ptx::analysis::comparison> stays_while;  // comparisons that are true in all iterations except the last
  };
  [[nodiscard]] std::optional<bool> leaves(std::uint32_t loop, ptx::analysis::evaluator& numbers) const;
  [[nodiscard]] static way_out make_way_out(const ptx::analysis::kernel_analysis& k,
                                            ptx::analysis::expression_id predicate, bool leaves_if);

  std::vector<std::vector<way_out>> ways_out_;  // by loop: the exits that every iteration reaches
  std::vector<bool> uniform_;
  std::vector<std::uint32_t> order_;
};

}  // namespace hpe::spread
