#pragma once

/// The accesses of a kernel to global memory, and how each address depends on block index, thread index, loop counters
/// and parameters.

#include <span>

#include "runtime/ptx/analysis/kernel_walk.h"

namespace hpe::ptx::analysis {

/// The kinds of quantities on which a value depends.
struct dependence {
  std::array<bool, 3> block{};
  bool thread = false, loop = false, data = false;

  [[nodiscard]] bool on_block() const { return block[0] || block[1] || block[2]; }
  /// Whether the value is the same for all threads of a grid, at any time.
  [[nodiscard]] bool is_uniform() const { return !on_block() && !thread && !loop && !data; }
  bool unite(const dependence& other);
};

/// The dependences of all quantities of a function.
class dependences {
 public:
  explicit dependences(kernel_walk& walk);

  /// Returns the dependence of an expression whose value is used in the basic block `block`.
  [[nodiscard]] dependence of(expression_id e, std::uint32_t block) const;
  [[nodiscard]] dependence of_quantity(quantity_id q, std::uint32_t block) const;
  /// Returns all assumptions that the expression needs, including those of the quantities on which its quantities
  /// depend.
  [[nodiscard]] assumption_set assumes(expression_id e) const;

 private:
  [[nodiscard]] dependence own(const quantity& q) const;
  /// Returns the dependence of a quantity whose value is used inside these loops, and after the end of all other loops
  /// in which the quantity varies.
  [[nodiscard]] dependence inside(quantity_id q, loop_set loops) const;
  bool pass();

  kernel_walk& walk_;
  std::vector<dependence> quantities_;
  std::vector<assumption_set> assumes_;
  // by loop: the decisions that determine how often it iterates
  std::vector<std::vector<kernel_walk::decision>> endings_;
  std::vector<dependence> ends_;  // by loop: the dependence of these decisions
};

/// How an address depends on the block index, from the most to the least precise class.
enum class address_class : std::uint8_t {
  local,           // no dependence, but blocks may repeat loops a different number of times
  affine,          // sum of (block index of an axis) * (factor, the same in the whole grid), plus a local part
  irregular,       // another dependence, for example through a division
  data_dependent,  // a dependence through values that were loaded from memory
};

/// One form of an address: base + sum of blocks[a] * (block index a) + rest.
struct address_form {
  std::optional<quantity_id> base;        // the pointer parameter or variable; none: not known
  std::array<expression_id, 3> blocks{};  // the factors of the block indices, for class affine
  expression_id rest = 0;
  expression_id whole = 0;
  address_class how = address_class::data_dependent;
  assumption_set assumes = 0;
};

enum class relation : std::uint8_t { equal, unequal, less, less_or_equal, greater, greater_or_equal };

/// A comparison of registers that holds whenever the access runs.
struct comparison {
  relation how = relation::equal;
  expression_id left = 0, right = 0;
  std::uint8_t bits = 32;
  bool is_signed = true;
  assumption_set assumes = 0;
};

/// Returns the comparisons that follow from conditions.
[[nodiscard]] std::vector<comparison> comparisons_of(expressions& table, std::span<const condition> conditions);

enum class access_kind : std::uint8_t { read, write, atomic };

struct access {
  std::uint32_t position = 0;  // the index of the instruction
  std::uint32_t operand = 0;   // the index of the source operand that contains the address
  access_kind what = access_kind::read;
  std::uint32_t bytes = 0;  // the size of the access; 0: the size is not constant
  address_class how = address_class::data_dependent;
  std::vector<address_form> forms;  // each execution uses an address that has one of these forms
  std::vector<comparison> where;
  const function* inside = nullptr;  // the called function that contains the access; null: the kernel itself
};

/// Returns the accesses in a function's own code, without those in functions that it calls.
[[nodiscard]] std::vector<access> find_accesses(const program& p, const function& f, kernel_walk& walk,
                                                const dependences& known);

}  // namespace hpe::ptx::analysis
