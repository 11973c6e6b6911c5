#pragma once

/// Computes the expression of an instruction's result from the expressions of its operands.

#include "runtime/ptx/analysis/expression.h"

namespace hpe::ptx::analysis {

/// The content of a register: an expression, and the assumptions under which the expression is correct.
struct value {
  expression_id of = 0;
  assumption_set assumes = 0;
  bool is_undefined = false;  // true if no path to this instruction writes the register
};

class value_rules {
 public:
  value_rules(const function& f, expressions& e, assumption_table& a)
      : function_(f), expressions_(e), assumptions_(a) {}

  /// Returns the result of a pure instruction or of cvta. `inside`: the loops that contain the instruction.
  value compute(const instruction& i, std::uint32_t position, const std::vector<value>& operands, loop_set inside);
  /// Returns the value of a special register.
  value special(const instruction& i, std::uint32_t position, loop_set inside);
  /// Returns the offset in the kernel's parameters from which a load from `address` reads. Empty if the address is not
  /// in the parameters, or if the offset is not constant.
  [[nodiscard]] std::optional<std::uint32_t> parameter_at(const instruction& i, const value& address) const;
  /// Returns the value of a load from the kernel's parameters at `offset`. If the load returns a vector, returns
  /// element `n`.
  value parameter(const instruction& i, std::uint32_t offset, unsigned n);
  /// Creates a quantity for a result that has no expression. `is_data`: whether the result was loaded from memory, or
  /// is a property of the hardware.
  value opaque(const instruction& i, std::uint32_t position, unsigned number, const std::vector<value>& depends,
               loop_set inside, bool is_data);
  /// Creates a quantity for an unknown value. `number` distinguishes unknown values at one position. `depends`: the
  /// values on which the unknown value depends, if they are known.
  value unknown(std::uint32_t position, std::uint32_t number, unsigned bits, loop_set inside,
                const std::vector<value>& depends = {});
  /// Creates a choice: a quantity that is equal to one of the alternatives. The alternatives are values of registers of
  /// `bits` bits, and the conditions decide which alternative the choice is equal to. `number` distinguishes choices at
  /// one position.
  value choose(std::uint32_t position, std::uint32_t number, unsigned bits, const std::vector<value>& alternatives,
               const std::vector<value>& conditions, loop_set inside);
  /// Returns the value of an operand that is not a register.
  value of_operand(const operand& o, unsigned bits);
  /// Returns the address that a load, a store or an atomic operation uses.
  value address(const operand& o, const value& of_register);
  /// Returns the width in bits of an operand that is a register or an immediate.
  [[nodiscard]] unsigned bits_of_operand(const instruction& i, std::size_t n) const;

 private:
  value node(const instruction& i, std::uint32_t position, const std::vector<value>& operands, integer_range values);
  value widened(std::uint32_t position, const value& v, unsigned from, unsigned to, bool is_signed, loop_set inside);
  std::optional<value> affine(const instruction& i, std::uint32_t position, const std::vector<value>& operands,
                              loop_set inside);
  std::optional<value> low_word(std::uint32_t position, const std::vector<value>& operands, unsigned bits,
                                loop_set inside);
  std::optional<value> masked(std::uint32_t position, const std::vector<value>& operands, unsigned bits,
                              loop_set inside);
  std::optional<value> inserted(const std::vector<value>& operands, unsigned bits);
  value convert(const instruction& i, std::uint32_t position, const value& v, loop_set inside);
  std::optional<value> combined(const value& a, const value& b, std::int64_t factor_of_b, unsigned bits);
  std::optional<value> multiplied(const value& a, const value& b, unsigned bits);
  [[nodiscard]] std::int64_t most_threads(std::uint32_t axis) const;
  [[nodiscard]] unsigned result_bits(const instruction& i) const;
  [[nodiscard]] bool is_integer(const instruction& i) const;

  const function& function_;
  expressions& expressions_;
  assumption_table& assumptions_;
};

}  // namespace hpe::ptx::analysis
