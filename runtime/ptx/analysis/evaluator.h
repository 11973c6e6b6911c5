#pragma once

/// The number that an expression is in one thread, at one time.

#include <functional>
#include <optional>
#include <vector>

#include "runtime/ptx/analysis/analysis.h"
#include "runtime/ptx/execution/block.h"

namespace hpe::ptx::analysis {

/// A thread, and how often each loop has begun again.
struct thread_place {
  dimensions grid, block_size;
  dimensions block, thread;
  const std::uint8_t* parameters = nullptr;
  const std::int64_t* counters = nullptr;  // of each loop
};

class evaluator {
 public:
  using number = std::optional<__int128>;

  /// `address_of` gives the address of a variable by its symbol, or nothing. The analysis must outlive the object.
  evaluator(const kernel_analysis& k, std::function<number(std::uint32_t)> address_of);

  /// Lets a choice count as the first of its alternatives that is known; the numbers are estimates then.
  void guess_choices() { guesses_ = true; }

  /// Later calls are about this place, which must stay valid.
  void go_to(const thread_place& place);
  /// Says that the counters of the place have changed.
  void forget() { ++now_; }

  /// Empty where the number depends on data, or is too large.
  [[nodiscard]] number of(expression_id e);
  [[nodiscard]] std::optional<bool> holds(const comparison& c);
  /// False also where an assumption is about a value that is not known.
  [[nodiscard]] bool assumptions_hold(assumption_set needed);

 private:
  struct known_number {
    std::uint64_t when = 0;
    number value;
  };
  [[nodiscard]] number of_quantity(quantity_id id);
  [[nodiscard]] number compute(const quantity& q);
  [[nodiscard]] number of_node(const quantity& q);

  const kernel_analysis& kernel_;
  expressions& table_;
  std::function<number(std::uint32_t)> address_of_;
  const thread_place* place_ = nullptr;
  std::vector<known_number> known_;
  std::uint64_t now_ = 1;
  bool guesses_ = false;
};

/// The low bits of a number.
[[nodiscard]] std::uint64_t low_bits(__int128 value, unsigned count);

}  // namespace hpe::ptx::analysis
