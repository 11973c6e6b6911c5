#pragma once

/// Values of registers as polynomials over quantities: block and thread index, sizes of block and grid, parameters,
/// loop counters, and results of instructions that no polynomial can express.
///
/// A polynomial stands for the bits of a register of w bits modulo 2^w. Quantities are integers: a quantity of w bits
/// is read as a signed number of w bits, so arithmetic on registers needs no assumption. Only when a register becomes
/// wider must the polynomial, as an integer, fit into the narrow register; that is an assumption of its own
/// (assumption_table) where the ranges of the quantities do not prove it.

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/ptx/analysis/flow_graph.h"
#include "runtime/ptx/program/program.h"

namespace hpe::ptx::analysis {

using quantity_id = std::uint32_t;
using expression_id = std::uint32_t;
using assumption_set = std::uint64_t;

/// An integer range; wide enough that sums of products rarely leave it, and saturating where they do.
struct range {
  __int128 low = 0, high = 0;
  [[nodiscard]] bool lies_in(const range& other) const { return low >= other.low && high <= other.high; }
};
[[nodiscard]] range range_of_bits(unsigned bits, bool is_signed);

struct quantity {
  enum class kind : std::uint8_t {
    block_index,   // %ctaid; number: axis
    thread_index,  // %tid
    block_size,    // %ntid
    grid_size,     // %nctaid
    parameter,     // number: offset among the kernel's parameters
    variable,      // the address of a variable; number: symbol
    counter,       // how often a loop has begun again; number: loop
    node,          // a function of the operands
    choice,        // one of the operands; the conditions decide which
    recurrence,    // a register at the header of a loop, which is no affine function of the counter; operands: its
                   // values at entry and at the ends of iterations
    result,        // of an instruction that has no expression; depends on the operands
  };
  kind what = kind::result;
  std::uint32_t number = 0;  // for a node, choice or result: of an instruction that makes it
  std::uint8_t bits = 64;
  bool is_data = false;     // loaded from memory, or a property of the hardware
  bool is_thread = false;   // differs between threads of a block beside what the operands say
  bool is_pointer = false;  // a parameter that the kernel uses as an address in global memory
  range values;
  loop_set varies;  // loops whose iterations may see different values
  assumption_set assumes = 0;
  std::vector<expression_id> operands;
  std::vector<expression_id> conditions;
  // How a node is computed: function(operands as unsigned numbers of `widths` bits); the fourth argument is `extra` if
  // there are fewer than four operands.
  const instruction* made_by = nullptr;
  scalar_function function = nullptr;
  std::uint64_t extra = 0;
  std::array<std::uint8_t, 4> widths{};
};

/// A product of quantities, in ascending order.
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

/// A table of quantities and expressions, which have numbers so that equal ones are the same. Expression 0 is 0.
class expressions {
 public:
  static constexpr std::size_t most_terms = 24;

  expressions();

  [[nodiscard]] const polynomial& at(expression_id e) const { return polynomials_[e]; }
  [[nodiscard]] const quantity& of(quantity_id q) const { return quantities_[q]; }
  [[nodiscard]] std::size_t quantities() const { return quantities_.size(); }
  [[nodiscard]] std::size_t size() const { return polynomials_.size(); }

  /// The quantity that has the same identity (kind, number, operands, function), or else a new one.
  quantity_id intern(quantity q, std::uint32_t distinction = 0);
  void mark_pointer(quantity_id q) { quantities_[q].is_pointer = true; }
  /// Says what a recurrence depends on, and what its operands assume.
  void set_dependence(quantity_id q, std::vector<expression_id> operands, assumption_set assumes) {
    quantities_[q].operands = std::move(operands);
    quantities_[q].assumes = assumes;
  }

  expression_id constant(std::int64_t value);
  expression_id single(quantity_id q);
  expression_id intern(polynomial p);
  /// Empty if the result has too many terms or too large products.
  std::optional<expression_id> sum(expression_id a, expression_id b, std::int64_t factor_of_b = 1);
  std::optional<expression_id> times(expression_id a, expression_id b);
  /// With factors modulo 2^bits, as signed numbers.
  expression_id reduced(expression_id e, unsigned bits);
  /// The expression with a quantity replaced.
  std::optional<expression_id> replaced(expression_id e, quantity_id q, expression_id by);

  [[nodiscard]] std::optional<std::int64_t> constant_of(expression_id e) const;
  [[nodiscard]] std::optional<quantity_id> single_of(expression_id e) const;
  [[nodiscard]] range range_of(expression_id e) const;
  [[nodiscard]] loop_set varies(expression_id e) const;
  [[nodiscard]] assumption_set assumes(expression_id e) const;

 private:
  using identity = std::tuple<quantity::kind, std::uint32_t, std::uint32_t, scalar_function, std::uint64_t,
                              std::vector<expression_id>, std::vector<expression_id>>;
  // References to elements stay valid when new ones are made.
  std::deque<quantity> quantities_;
  std::deque<polynomial> polynomials_;
  std::map<identity, quantity_id> known_quantities_;
  std::map<polynomial, expression_id> known_polynomials_;
};

/// That the expression, as an integer, fits into a register of so many bits.
struct assumption {
  expression_id of = 0;
  std::uint8_t bits = 32;
  bool is_signed = true;
  bool operator==(const assumption&) const = default;
};

class assumption_table {
 public:
  /// The set with this assumption alone; empty if the table is full.
  [[nodiscard]] std::optional<assumption_set> number_of(const assumption& a);
  [[nodiscard]] const std::vector<assumption>& all() const { return all_; }

 private:
  std::vector<assumption> all_;
};

}  // namespace hpe::ptx::analysis
