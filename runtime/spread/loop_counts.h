#pragma once

/// How often the loops of a kernel run in a thread, and in how many threads code runs that depends on flags in memory.

#include "runtime/ptx/analysis/evaluator.h"

namespace hpe::spread {

/// For each block of the kernel's control flow, the share of threads that is assumed to run it. A flag is a value in
/// memory that the kernel compares with a constant, for example the mark of a graph search on the nodes of its
/// frontier. Few flags are assumed to be set.
[[nodiscard]] std::vector<double> shares_of_threads(const ptx::analysis::kernel_analysis& k);
inline constexpr double share_with_flag = 1.0 / 16;

class loop_counts {
 public:
  /// Both must outlive the object.
  explicit loop_counts(const ptx::analysis::kernel_analysis& k);

  /// The counter that a loop has in its last iteration, with the evaluator's place and its counters of outer loops;
  /// `counter` is the loop's own counter at that place and is changed. -1 where the loop
  /// does not run, `assumed` where it depends on data.
  [[nodiscard]] std::int64_t last_of(std::uint32_t loop, ptx::analysis::evaluator& numbers,
                                     std::int64_t& counter) const;
  /// Whether last_of is the same in all threads of a launch.
  [[nodiscard]] bool is_uniform(std::uint32_t loop) const { return uniform_[loop]; }
  /// The loops, each after those that contain it or end before it.
  [[nodiscard]] const std::vector<std::uint32_t>& order() const { return order_; }

  static constexpr std::int64_t assumed = 15;

 private:
  struct way_out {
    ptx::analysis::expression_id predicate = 0;
    bool leaves_if = true;
    /// For a loop that ends when two numbers are equal: their expressions.
    struct pair {
      ptx::analysis::expression_id left = 0, right = 0;
    };
    std::optional<pair> until_equal;
  };
  [[nodiscard]] static way_out make_way_out(const ptx::analysis::kernel_analysis& k,
                                            ptx::analysis::expression_id predicate, bool leaves_if);

  std::vector<std::vector<way_out>> ways_out_;  // of each loop, taken in each iteration or not
  std::vector<bool> uniform_;
  std::vector<std::uint32_t> order_;
};

}  // namespace hpe::spread
