#pragma once

/// Values of registers as polynomials over quantities. Quantities are block and thread indices, sizes of block and
/// grid, parameters, addresses of variables, loop counters, and results of instructions that are not polynomials.
///
/// A polynomial represents the content of a register of w bits, modulo 2^w. A quantity of w bits is a signed integer of
/// w bits. Arithmetic on registers of w bits is therefore exact modulo 2^w and needs no assumption. Only the extension
/// of a register to a wider register requires that the polynomial, evaluated over the integers, fits into the narrower
/// register. If the ranges of the quantities do not prove that the polynomial fits, the analysis records an assumption
/// (assumption_table).

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/ptx/analysis/flow_graph.h"
#include "runtime/ptx/program/ptx_program.h"

namespace hpe::ptx::analysis {

using quantity_id = std::uint32_t;
using expression_id = std::uint32_t;
using assumption_set = std::uint64_t;

/// An integer range. Most sums of products fit into the 128-bit bounds; larger bounds saturate.
struct integer_range {
  __int128 low = 0, high = 0;
  [[nodiscard]] bool lies_in(const integer_range& other) const { return low >= other.low && high <= other.high; }
};
[[nodiscard]] integer_range range_of_bits(unsigned bits, bool is_signed);
[[nodiscard]] integer_range hull_of(const integer_range& a, const integer_range& b);
[[nodiscard]] integer_range sum_of(const integer_range& a, const integer_range& b);
[[nodiscard]] integer_range product_of(const integer_range& a, const integer_range& b);

struct quantity {
  enum class kind : std::uint8_t {
    block_index,   // %ctaid; `number` is the axis
    thread_index,  // %tid
    block_size,    // %ntid
    grid_size,     // %nctaid
    parameter,     // `number` is the offset in the kernel's parameters
    variable,      // the address of a variable; `number` is its symbol
    formals,       // the address of the kernel's parameters
    counter,       // the number of times that a thread has repeated a loop; `number` is the loop
    node,          // the result of an instruction, as a function of the operands
    choice,        // one of the operands, selected by the conditions
    // the value of a register at a loop header, if it is not affine in the counter; operands: the values at entry and
    // at latches
    recurrence,
    result,  // the result of an instruction that depends on more than its operands, such as a load
  };
  kind what = kind::result;
  std::uint32_t number = 0;  // for a node, choice, recurrence or result: the position of an instruction
  std::uint8_t bits = 64;
  bool is_data = false;     // whether the value was loaded from memory, or is a property of the hardware
  bool is_thread = false;   // whether the value may differ between threads of a block even if the operands are the same
  bool is_pointer = false;  // whether the quantity is a parameter that the kernel uses as an address in global memory
  integer_range values;
  std::uint64_t possible =
      ~std::uint64_t{0};  // the bits that may be set in the value after its sign extension to 64 bits
  loop_set varies;        // the loops whose iterations may read different values
  assumption_set assumes = 0;
  std::vector<expression_id> operands;
  std::vector<expression_id> conditions;
  // The value of a node is the result of `function` for the operands, as unsigned numbers of `widths` bits. If the node
  // has fewer than four operands, the fourth argument is `extra`.
  const instruction* made_by = nullptr;
  scalar_function function = nullptr;
  std::uint64_t extra = 0;
  std::array<std::uint8_t, 4> widths{};
};

/// A product of quantities; the numbers of the quantities are in ascending order.
struct product {
  static constexpr std::size_t most = 6;
  std::array<quantity_id, most> factors{};
  std::uint8_t count = 0;

  [[nodiscard]] bool is_one() const { return count == 0; }
  bool operator==(const product&) const = default;
  bool operator<(const product& other) const { return std::tie(factors, count) < std::tie(other.factors, other.count); }
};

struct term {
  product of;
  std::int64_t factor = 0;
  bool operator==(const term&) const = default;
  bool operator<(const term& other) const { return std::tie(of, factor) < std::tie(other.of, other.factor); }
};

/// Terms in ascending order of their products; no factor is 0.
using polynomial = std::vector<term>;

/// A table of quantities and expressions. Equal quantities or expressions have the same number. Expression 0 is the
/// constant 0.
class expressions {
 public:
  static constexpr std::size_t most_terms = 24;

  expressions();

  [[nodiscard]] const polynomial& at(expression_id e) const { return polynomials_[e]; }
  [[nodiscard]] const quantity& of(quantity_id q) const { return quantities_[q]; }
  [[nodiscard]] std::size_t quantities() const { return quantities_.size(); }
  [[nodiscard]] std::size_t size() const { return polynomials_.size(); }

  /// Returns the number of the quantity that is equal to `q`; adds `q` if the table does not contain it. Two nodes are
  /// equal if their functions and operands are equal. Two results are equal if their instructions and `distinction` are
  /// equal.
  quantity_id intern(quantity q, std::uint32_t distinction = 0);
  void mark_pointer(quantity_id q) { quantities_[q].is_pointer = true; }
  /// Sets the operands on which the value of a recurrence depends, and the assumptions of these operands.
  void set_dependence(quantity_id q, std::vector<expression_id> operands, assumption_set assumes) {
    quantities_[q].operands = std::move(operands);
    quantities_[q].assumes = assumes;
  }

  expression_id constant(std::int64_t value);
  expression_id single(quantity_id q);
  expression_id intern(polynomial p);
  /// sum() returns a + b * factor_of_b, and times() returns a * b. The result is empty if it would have more than
  /// most_terms terms, or a term would have more than product::most factors.
  std::optional<expression_id> sum(expression_id a, expression_id b, std::int64_t factor_of_b = 1);
  std::optional<expression_id> times(expression_id a, expression_id b);
  /// Returns the expression with each factor reduced modulo 2^bits to a signed number.
  expression_id reduced(expression_id e, unsigned bits);
  /// Returns `e` with quantity `q` replaced by the expression `by`; empty under the same conditions as for sum().
  std::optional<expression_id> replaced(expression_id e, quantity_id q, expression_id by);

  [[nodiscard]] std::optional<std::int64_t> constant_of(expression_id e) const;
  [[nodiscard]] std::optional<quantity_id> single_of(expression_id e) const;
  [[nodiscard]] integer_range range_of(expression_id e) const;
  /// Returns the bits that may be set in a 64-bit register with this value. For a narrower register, the low bits of
  /// the result apply.
  [[nodiscard]] std::uint64_t possible_bits(expression_id e) const;
  /// Returns e & mask as the sum of the terms whose bits are all inside the mask. Empty if a term has bits both inside
  /// and outside of the mask, or if the addition of the terms may carry. `bits` is the width of the register.
  [[nodiscard]] std::optional<expression_id> masked(expression_id e, std::uint64_t mask, unsigned bits);
  [[nodiscard]] loop_set varies(expression_id e) const;
  [[nodiscard]] assumption_set assumes(expression_id e) const;

 private:
  using identity = std::tuple<quantity::kind, std::uint32_t, std::uint32_t, scalar_function, std::uint64_t,
                              std::vector<expression_id>, std::vector<expression_id>>;
  [[nodiscard]] std::uint64_t possible_bits(const term& t) const;

  // Deques, so that references to elements stay valid when the table grows.
  std::deque<quantity> quantities_;
  std::deque<polynomial> polynomials_;
  std::map<identity, quantity_id> known_quantities_;
  std::map<polynomial, expression_id> known_polynomials_;
};

/// The assumption that an expression, evaluated over the integers, fits into a register of `bits` bits.
struct assumption {
  expression_id of = 0;
  std::uint8_t bits = 32;
  bool is_signed = true;
  bool operator==(const assumption&) const = default;
};

class assumption_table {
 public:
  /// Adds the assumption if it is new. Returns the set that contains only this assumption; empty if the table is full.
  [[nodiscard]] std::optional<assumption_set> number_of(const assumption& a);
  [[nodiscard]] const std::vector<assumption>& all() const { return all_; }

 private:
  std::vector<assumption> all_;
};

}  // namespace hpe::ptx::analysis
