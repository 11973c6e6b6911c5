#pragma once

/// How the functions that a loop calls use memory, and predicates of instructions, for the search for loops that wait
/// (block_waits.h).

#include <set>
#include <vector>

#include "runtime/ptx/analysis/block_waits.h"

namespace hpe::ptx::analysis {

/// Returns the state space of an access; modifier::count if the address is generic.
[[nodiscard]] modifier space_of(const instruction& i);
/// Whether loads after the instruction must read memory again: the instruction is a barrier or a fence.
[[nodiscard]] bool synchronises(const instruction& i);
/// Whether the instruction stores an argument of a call.
[[nodiscard]] bool is_argument(const instruction& i);
/// Whether the instruction stores into memory that other functions may read.
[[nodiscard]] bool stores(const instruction& i);
/// Whether an atomic operation is add, inc or dec, so that threads can get numbers from a counter.
[[nodiscard]] bool takes_numbers(const instruction& atomic);

/// A summary of the functions that a loop calls, directly or through other functions.
class called_functions {
 public:
  /// The program must outlive the object.
  explicit called_functions(const program& p) : program_(p) {}

  void add(const instruction& call);

  bool polls = false;          // a function reads values that other threads may write
  bool counts = false;         // a function atomically adds a register to memory and uses the old value
  bool may_pass_zero = false;  // a function may pass zero to another function or to the addition
  bool stores_to_any = false;  // a function stores at generic addresses
  bool stores_to_shared = false;
  bool has_fence = false, synchronises = false;
  std::set<std::uint32_t> symbols;  // the variables that the functions name

 private:
  void note(const instruction& call);
  void look(const instruction& i);

  const program& program_;
  std::set<const function*> seen_;
  std::vector<const function*> rest_;
};

}  // namespace hpe::ptx::analysis
