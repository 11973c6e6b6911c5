#pragma once

/// Computes the possible values and bits in the result of an instruction that is not a polynomial of its operands.

#include <span>

#include "runtime/ptx/analysis/expression.h"

namespace hpe::ptx::analysis {

/// Returns the range of the results in a register of `bits` bits, if the operands are in the ranges `operands`.
[[nodiscard]] integer_range values_of_node(const instruction& i, std::span<const integer_range> operands,
                                           unsigned bits);

/// Returns the bits that may be set in the result after its sign extension to 64 bits (quantity::possible).
[[nodiscard]] std::uint64_t possible_bits_of_node(const expressions& table, const instruction& i,
                                                  const std::vector<expression_id>& operands, unsigned bits);

/// Returns the number in which exactly the `count` lowest bits are set.
[[nodiscard]] constexpr std::uint64_t bits_below(unsigned count) {
  return count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
}

}  // namespace hpe::ptx::analysis
