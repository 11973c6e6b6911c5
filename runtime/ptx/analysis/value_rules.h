#pragma once

/// What the expression of an instruction's result is, given those of its operands.

#include "runtime/ptx/analysis/expression.h"

namespace hpe::ptx::analysis {

/// The content of a register: an expression, and the assumptions under which it holds.
struct value {
  expression_id of = 0;
  assumption_set assumes = 0;
  bool is_undefined = false;  // never written on any path that leads here
};

class value_rules {
 public:
  value_rules(const function& f, expressions& e, assumption_table& a)
      : function_(f), expressions_(e), assumptions_(a) {}

  /// The result of a pure instruction, or of cvta; `inside` are the loops that contain the instruction.
  value compute(const instruction& i, std::uint32_t position, const std::vector<value>& operands, loop_set inside);
  /// A special register.
  value special(const instruction& i, std::uint32_t position, loop_set inside);
  /// A load from the kernel's parameters; element n of a vector.
  value parameter(const instruction& i, unsigned n);
  /// A result that has no expression. is_data: it was in memory, or is a property of the hardware.
  value opaque(const instruction& i, std::uint32_t position, unsigned number, const std::vector<value>& depends,
               loop_set inside, bool is_data);
  /// A value about which nothing is known; `number` tells those of one position apart.
  value unknown(std::uint32_t position, std::uint32_t number, unsigned bits, loop_set inside);
  /// One of the alternatives, all of registers of so many bits; the conditions decide which. `number` tells choices at
  /// one position apart.
  value choose(std::uint32_t position, std::uint32_t number, unsigned bits, const std::vector<value>& alternatives,
               const std::vector<value>& conditions, loop_set inside);
  /// An operand that is no register.
  value of_operand(const operand& o, unsigned bits);
  /// The address that a load, a store or an atomic operation uses.
  value address(const operand& o, const value& of_register);
  /// The bits of an operand, a register or an immediate.
  [[nodiscard]] unsigned bits_of_operand(const instruction& i, std::size_t n) const;

 private:
  value node(const instruction& i, std::uint32_t position, const std::vector<value>& operands, range values);
  value widened(std::uint32_t position, const value& v, unsigned from, unsigned to, bool is_signed, loop_set inside);
  std::optional<value> affine(const instruction& i, std::uint32_t position, const std::vector<value>& operands,
                              loop_set inside);
  std::optional<value> low_word(std::uint32_t position, const std::vector<value>& operands, unsigned bits,
                                loop_set inside);
  value convert(const instruction& i, std::uint32_t position, const value& v, loop_set inside);
  std::optional<value> combined(const value& a, const value& b, std::int64_t factor_of_b, unsigned bits);
  std::optional<value> multiplied(const value& a, const value& b, unsigned bits);
  [[nodiscard]] range values_of(const instruction& i, const std::vector<value>& operands, unsigned bits) const;
  [[nodiscard]] unsigned result_bits(const instruction& i) const;
  [[nodiscard]] bool is_integer(const instruction& i) const;

  const function& function_;
  expressions& expressions_;
  assumption_table& assumptions_;
};

}  // namespace hpe::ptx::analysis
