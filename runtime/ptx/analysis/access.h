#pragma once

/// The accesses of a kernel to global memory, and how each address follows from block index, thread index, loop
/// counters and parameters.

#include "runtime/ptx/analysis/kernel_walk.h"

namespace hpe::ptx::analysis {

/// What a value depends on.
struct dependence {
  std::array<bool, 3> block{};
  bool thread = false, loop = false, data = false;

  [[nodiscard]] bool on_block() const { return block[0] || block[1] || block[2]; }
  /// The same for all threads of a grid, at any time.
  [[nodiscard]] bool is_uniform() const { return !on_block() && !thread && !loop && !data; }
  bool unite(const dependence& other);
};

/// The dependences of all quantities of a function.
class dependences {
 public:
  explicit dependences(kernel_walk& walk);

  /// Of an expression that code of the block uses.
  [[nodiscard]] dependence of(expression_id e, std::uint32_t block) const;
  [[nodiscard]] dependence of_quantity(quantity_id q, std::uint32_t block) const;
  /// All assumptions that the expression needs, also those of quantities that its quantities depend on.
  [[nodiscard]] assumption_set assumes(expression_id e) const;

 private:
  [[nodiscard]] dependence own(const quantity& q) const;
  bool pass();

  kernel_walk& walk_;
  std::vector<dependence> quantities_;
  std::vector<assumption_set> assumes_;
  std::vector<dependence> ends_;  // what decides how often each loop runs
};

/// How an address follows from the block index. Later classes say less.
enum class address_class : std::uint8_t {
  local,           // not at all: blocks differ at most in how far their loops run
  affine,          // sum of (block index of an axis) * (factor that is the same for the whole grid), and a local part
  irregular,       // in another way, as by a division of an index
  data_dependent,  // by values that were loaded from memory
};

/// One form of an address: base + sum of blocks[a] * (block index a) + rest.
struct address_form {
  std::optional<quantity_id> base;        // a parameter or variable that is a pointer; none: not known
  std::array<expression_id, 3> blocks{};  // for class affine
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

enum class access_kind : std::uint8_t { read, write, atomic };

struct access {
  std::uint32_t position = 0;  // of the instruction
  std::uint32_t operand = 0;   // the source operand that is the address
  access_kind what = access_kind::read;
  std::uint32_t bytes = 0;  // 0: differs from time to time
  address_class how = address_class::data_dependent;
  std::vector<address_form> forms;  // at each time the address has one of them
  std::vector<comparison> where;
  const function* inside = nullptr;  // the called function that makes it; null: the kernel itself
};

/// The accesses of a function's own code. Does not look into functions that it calls.
[[nodiscard]] std::vector<access> find_accesses(const program& p, const function& f, kernel_walk& walk,
                                                const dependences& known);

}  // namespace hpe::ptx::analysis
