#pragma once

/// The accesses of a kernel to global memory, and how each address depends on block index, thread index, loop counters
/// and parameters.

#include <span>

#include "runtime/ptx/analysis/kernel_walk.h"

namespace hpe::ptx::analysis {

/// The quantities on which a value depends: block indices (by axis), thread indices, loop counters, and values from
/// memory (`data`).
struct dependence {
  std::array<bool, 3> block{};
  bool thread = false, loop = false, data = false;

  [[nodiscard]] bool on_block() const { return block[0] || block[1] || block[2]; }
  /// Whether the value is the same in all threads of a grid during the whole launch.
  [[nodiscard]] bool is_uniform() const { return !on_block() && !thread && !loop && !data; }
  bool unite(const dependence& other);
};

/// The dependences of all quantities (expression.h) of a function.
class dependences {
 public:
  explicit dependences(kernel_walk& walk);

  /// Returns the dependence of an expression that the basic block `block` uses.
  [[nodiscard]] dependence of(expression_id e, std::uint32_t block) const;
  [[nodiscard]] dependence of_quantity(quantity_id q, std::uint32_t block) const;
  /// Returns all assumptions that the expression needs, including the assumptions of all quantities on which it
  /// depends.
  [[nodiscard]] assumption_set assumes(expression_id e) const;

 private:
  [[nodiscard]] dependence own(const quantity& q) const;
  /// Returns the dependence of a quantity at a position that is inside the loops `loops`, and after the end of all
  /// other loops in which the quantity varies.
  [[nodiscard]] dependence inside(quantity_id q, loop_set loops) const;
  bool pass();

  kernel_walk& walk_;
  std::vector<dependence> quantities_;
  std::vector<assumption_set> assumes_;
  // By loop: the decisions that determine how often the loop iterates.
  std::vector<std::vector<kernel_walk::decision>> endings_;
  std::vector<dependence> ends_;  // by loop: the dependence of the decisions in endings_
};

/// How an address depends on the block index. The most precise class comes first.
enum class address_class : std::uint8_t {
  local,   // no dependence; different blocks may repeat a loop a different number of times
  affine,  // sum of block index * factor along each axis, plus a local part; the factors are the same in the whole grid
  irregular,       // another dependence, for example through a division
  data_dependent,  // a dependence through values from memory
};

/// One form of an address: base + sum of blocks[a] * (block index along axis a) + rest.
struct address_form {
  std::optional<quantity_id> base;        // the pointer parameter or variable; empty if unknown
  std::array<expression_id, 3> blocks{};  // the factors of the block indices, for class affine
  expression_id rest = 0;
  expression_id whole = 0;
  address_class how = address_class::data_dependent;
  assumption_set assumes = 0;
};

enum class relation : std::uint8_t { equal, unequal, less, less_or_equal, greater, greater_or_equal };

/// A comparison of two registers that is true whenever the access runs.
struct comparison {
  relation how = relation::equal;
  expression_id left = 0, right = 0;
  std::uint8_t bits = 32;
  bool is_signed = true;
  assumption_set assumes = 0;
};

/// Returns the comparisons that are true if the conditions hold.
[[nodiscard]] std::vector<comparison> comparisons_of(expressions& table, std::span<const condition> conditions);
/// Returns comparisons of integers that are all true if and only if the conditions hold; nullopt if there are none.
[[nodiscard]] std::optional<std::vector<comparison>> equivalents_of(expressions& table,
                                                                    std::span<const condition> conditions);

enum class access_kind : std::uint8_t { read, write, atomic };

struct access {
  std::uint32_t position = 0;  // the index of the instruction
  std::uint32_t operand = 0;   // the index, among the source operands, of the operand that contains the address
  access_kind what = access_kind::read;
  std::uint32_t bytes = 0;  // the size of the access; 0 if the size is not constant
  address_class how = address_class::data_dependent;
  std::vector<address_form> forms;  // the address has one of these forms in each execution
  std::vector<comparison> where;
  const function* inside =
      nullptr;  // the called function that contains the access; null if the kernel itself contains it
};

/// Returns the accesses in the code of function `f`, without the accesses in functions that it calls.
[[nodiscard]] std::vector<access> find_accesses(const program& p, const function& f, kernel_walk& walk,
                                                const dependences& known);

}  // namespace hpe::ptx::analysis
