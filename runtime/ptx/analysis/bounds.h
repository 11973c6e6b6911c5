#pragma once

/// Computes in which range the value of an expression lies, for all threads of a box of blocks, at any time.

#include <vector>

#include "runtime/ptx/analysis/evaluator.h"

namespace hpe::ptx::analysis {

/// Computes ranges for one launch. A value is never outside of its range as long as the assumptions of the expression
/// hold (assumptions_hold). Objects only read the analysis, so several threads may use one analysis, each with its own
/// object.
class bounds {
 public:
  /// parameters: the values of all parameters of the kernel. The analysis and the parameters must outlive the object.
  bounds(const kernel_analysis& k, const dimensions& grid, const dimensions& block_size,
         const std::uint8_t* parameters);

  /// Later calls compute ranges for the blocks from `first` to `last`, both included. Removes the limits of loops.
  void go_to(const dimensions& first, const dimensions& last);
  /// Sets a limit: no thread of these blocks repeats loop `loop` more than `last` times. Loops without a limit may run
  /// forever.
  void limit(std::uint32_t loop, std::int64_t last);

  [[nodiscard]] range of(expression_id e);
  /// Returns the range of an expression, read as the content of a register of `bits` bits.
  [[nodiscard]] range of_register(expression_id e, unsigned bits, bool is_signed);
  /// The values of an expression in the iterations of a loop: start + step * counter. line_of returns nothing if the
  /// expression changes in another way.
  struct line {
    range start;
    __int128 step = 0;
  };
  [[nodiscard]] std::optional<line> line_of(expression_id e, std::uint32_t loop);
  /// Returns whether the assumptions hold in all threads of the blocks. Returns false if the ranges do not prove it.
  [[nodiscard]] bool assumptions_hold(assumption_set needed);
  /// Returns whether the comparison holds in no thread of the blocks. Returns false if the ranges do not prove it.
  [[nodiscard]] bool never_holds(const comparison& c);

 private:
  struct known_range {
    std::uint64_t when = 0;
    range values;
  };
  [[nodiscard]] const range& of_quantity(quantity_id id);
  [[nodiscard]] range compute(const quantity& q);
  [[nodiscard]] range of_node(const quantity& q);

  const kernel_analysis& kernel_;
  const expressions& table_;
  const dimensions grid_, block_size_;
  const std::uint8_t* const parameters_;
  dimensions first_{}, last_{};
  std::vector<range> counters_;  // by loop: how many times it has been repeated
  std::vector<known_range> known_;
  std::uint64_t now_ = 1;
};

}  // namespace hpe::ptx::analysis
