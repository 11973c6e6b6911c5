#include "runtime/ptx/analysis/node_values.h"

#include <algorithm>

namespace hpe::ptx::analysis {

integer_range values_of_node(const instruction& i, std::span<const integer_range> operands, unsigned bits) {
  const integer_range all = range_of_bits(bits, bits > 1);
  const auto constant = [&](std::size_t n) -> std::optional<std::int64_t> {
    if (n >= operands.size() || operands[n].low != operands[n].high || !operands[n].lies_in(all)) return std::nullopt;
    return static_cast<std::int64_t>(operands[n].low);
  };
  const bool is_unsigned = !is_signed(i.types[0]);
  const integer_range first = operands.empty() ? all : operands[0];
  const bool first_is_positive = first.low >= 0 && first.lies_in(all);
  integer_range found = all;
  switch (i.op) {
    case opcode::setp: return {0, 1};
    case opcode::and_:
      for (const std::size_t n : {std::size_t{0}, std::size_t{1}})
        if (const auto c = constant(n); c && *c >= 0) found = {0, std::min<__int128>(found.high, *c)};
      break;
    case opcode::rem:
      if (const auto c = constant(1); c && *c > 0) found = {is_unsigned || first_is_positive ? 0 : -*c + 1, *c - 1};
      break;
    case opcode::div:
      if (const auto c = constant(1); c && *c > 0) {
        if (first_is_positive)
          found = {first.low / *c, first.high / *c};
        else if (is_unsigned && *c > 1)
          found = {0, range_of_bits(bits, false).high / *c};
      }
      break;
    case opcode::shr:
      if (const auto c = constant(1); c && *c > 0 && *c < bits) {
        if (first_is_positive || (!is_unsigned && first.lies_in(all)))
          found = {first.low >> *c, first.high >> *c};
        else
          found = {(is_unsigned ? 0 : all.low) >> *c, range_of_bits(bits, !is_unsigned).high >> *c};
      }
      break;
    case opcode::selp:
    case opcode::min:
    case opcode::max:
      // For non-negative numbers, signed and unsigned comparisons have the same result.
      if (operands.size() >= 2 && !i.has(modifier::relu)) {
        const integer_range hull = hull_of(first, operands[1]);
        if (i.op == opcode::selp || !is_unsigned || hull.low >= 0) found = hull;
      }
      break;
    default: break;
  }
  return found.lies_in(all) ? found : all;
}

std::uint64_t possible_bits_of_node(const expressions& table, const instruction& i,
                                    const std::vector<expression_id>& operands, unsigned bits) {
  const auto of = [&](std::size_t n) { return table.possible_bits(operands[n]); };
  std::uint64_t found = ~std::uint64_t{0};
  if (i.op == opcode::and_) found = of(0) & of(1);
  if (i.op == opcode::or_ || i.op == opcode::xor_ || i.op == opcode::selp) found = of(0) | of(1);
  const std::uint64_t width = bits_below(bits), sign = width ^ (width >> 1U);
  return (found & sign) != 0 ? found | ~width : found & width;
}

}  // namespace hpe::ptx::analysis
