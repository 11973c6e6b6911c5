#pragma once

/// What the functions that a loop calls do with memory, and predicates of instructions for the search for waits.

#include <set>
#include <vector>

#include "runtime/ptx/analysis/block_waits.h"

namespace hpe::ptx::analysis {

/// Whether a load that is repeated sees each write of another thread at some time.
[[nodiscard]] bool is_polling(const instruction& i);
/// The state space of an access; count if the address is generic.
[[nodiscard]] modifier space_of(const instruction& i);
/// Whether loads behind the instruction read memory again.
[[nodiscard]] bool synchronises(const instruction& i);
/// Whether the instruction stores an argument of a call.
[[nodiscard]] bool is_argument(const instruction& i);
/// Whether the instruction stores into memory that other functions may read.
[[nodiscard]] bool stores(const instruction& i);
/// Whether an atomic operation adds to a counter.
[[nodiscard]] bool takes_numbers(const instruction& atomic);

/// Functions that are called, directly or through others.
class called_functions {
 public:
  /// The program must outlive the object.
  explicit called_functions(const program& p) : program_(p) {}

  void add(const instruction& call);

  bool polls = false;          // reads what other threads write
  bool counts = false;         // adds a register to memory, and returns the value from before
  bool may_pass_zero = false;  // to another function, or to the addition
  bool stores_to_any = false;  // at generic addresses
  bool stores_to_shared = false;
  bool has_fence = false, synchronises = false;
  std::set<std::uint32_t> symbols;  // which the functions name

 private:
  void note(const instruction& call);
  void look(const instruction& i);

  const program& program_;
  std::set<const function*> seen_;
  std::vector<const function*> rest_;
};

}  // namespace hpe::ptx::analysis
