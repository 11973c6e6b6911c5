#pragma once

/// The numbers that an expression can be in all threads of a box of blocks, at any time.

#include <vector>

#include "runtime/ptx/analysis/evaluator.h"

namespace hpe::ptx::analysis {

/// For one launch. A number is never outside of its range as long as the assumptions of the expression hold
/// (assumptions_hold). Reads the analysis only, so several threads may have objects for the same one.
class bounds {
 public:
  /// parameters: as many bytes as the kernel has. The analysis and the parameters must outlive the object.
  bounds(const kernel_analysis& k, const dimensions& grid, const dimensions& block_size,
         const std::uint8_t* parameters);

  /// Later calls are about blocks from `first` to `last`, both included. Forgets the limits of loops.
  void go_to(const dimensions& first, const dimensions& last);
  /// No thread of these blocks begins the loop again more often than this. Loops without a limit may run forever.
  void limit(std::uint32_t loop, std::int64_t last);

  [[nodiscard]] range of(expression_id e);
  /// Of an expression as the content of a register, read as a signed or unsigned number.
  [[nodiscard]] range of_register(expression_id e, unsigned bits, bool is_signed);
  /// start + step * counter of the loop; nothing if the expression changes in another way from one iteration to the
  /// next.
  struct line {
    range start;
    __int128 step = 0;
  };
  [[nodiscard]] std::optional<line> line_of(expression_id e, std::uint32_t loop);
  /// Whether they hold in all these threads. False where the ranges do not prove it.
  [[nodiscard]] bool assumptions_hold(assumption_set needed);
  /// Whether the comparison holds in none of these threads. False where the ranges do not prove it.
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
  std::vector<range> counters_;  // of each loop
  std::vector<known_range> known_;
  std::uint64_t now_ = 1;
};

}  // namespace hpe::ptx::analysis
