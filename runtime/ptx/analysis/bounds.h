#pragma once

/// Computes the range of the values of an expression, for all threads of a box of blocks during the whole launch.

#include <vector>

#include "runtime/ptx/analysis/evaluator.h"

namespace hpe::ptx::analysis {

/// Computes ranges for one launch. If the assumptions of the expression hold (assumptions_hold), all its values are in
/// the range. Objects only read the analysis, so several CPU threads may use one analysis, each with its own object.
class bounds {
 public:
  /// `parameters`: the bytes of all parameters of the kernel. `k` and `parameters` must outlive the object.
  bounds(const kernel_analysis& k, const dimensions& grid, const dimensions& block_size,
         const std::uint8_t* parameters);

  /// Selects the blocks from `first` to `last`, both included, for later calls. Removes the limits of loops.
  void go_to(const dimensions& first, const dimensions& last);
  /// Call this if no thread of the selected blocks repeats loop `loop` more than `last` times. Without this call, the
  /// ranges allow any number of iterations.
  void limit(std::uint32_t loop, std::int64_t last);

  [[nodiscard]] integer_range of(expression_id e);
  /// Returns the range of an expression, read as the content of a register of `bits` bits.
  [[nodiscard]] integer_range of_register(expression_id e, unsigned bits, bool is_signed);
  /// The values of an expression in the iterations of a loop: start + step * counter. line_of returns nothing if the
  /// values do not have this form.
  struct line {
    integer_range start;
    __int128 step = 0;
  };
  [[nodiscard]] std::optional<line> line_of(expression_id e, std::uint32_t loop);
  /// Returns true if the ranges prove that the assumptions hold in all threads of the blocks.
  [[nodiscard]] bool assumptions_hold(assumption_set needed);
  /// Returns true if the ranges prove that the comparison is false in all threads of the blocks.
  [[nodiscard]] bool never_holds(const comparison& c);

 private:
  struct known_range {
    std::uint64_t when = 0;
    integer_range values;
  };
  [[nodiscard]] const integer_range& of_quantity(quantity_id id);
  [[nodiscard]] integer_range compute(const quantity& q);
  [[nodiscard]] integer_range of_node(const quantity& q);

  const kernel_analysis& kernel_;
  const expressions& table_;
  const dimensions grid_, block_size_;
  const std::uint8_t* const parameters_;
  dimensions first_{}, last_{};
  std::vector<integer_range> counters_;  // by loop: the number of times that a thread has repeated the loop
  std::vector<known_range> known_;
  std::uint64_t now_ = 1;
};

}  // namespace hpe::ptx::analysis
