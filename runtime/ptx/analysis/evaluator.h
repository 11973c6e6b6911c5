#pragma once

/// Computes the value of an expression in one thread, for given loop counters.

#include <array>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "runtime/ptx/analysis/analysis.h"
#include "runtime/ptx/execution/block.h"

namespace hpe::ptx::analysis {

/// A thread of a launch, and the number of times that it has repeated each loop.
struct thread_place {
  dimensions grid, block_size;
  dimensions block, thread;
  const std::uint8_t* parameters = nullptr;
  const std::int64_t* counters = nullptr;  // by loop: the number of times that the thread has repeated the loop
};

/// Evaluates expressions for one launch: all places must have the same grid, block size and parameters.
class evaluator {
 public:
  using number = std::optional<__int128>;

  /// `address_of` receives the number of a variable's symbol, and returns the variable's address, or nothing if the
  /// address is unknown. `address_of` must always return the same result for the same symbol. The analysis must outlive
  /// the object.
  evaluator(const kernel_analysis& k, std::function<number(std::uint32_t)> address_of);

  /// After this call, a choice (quantity::kind) has the value of its first alternative with a known value, so results
  /// are estimates.
  void guess_choices() { guesses_ = true; }

  /// Later calls evaluate expressions at `place`, which must stay valid until then.
  void go_to(const thread_place& place);
  /// Call this after the counters of the place have changed.
  void forget() { ++times_[static_cast<std::size_t>(changes::by_counter)]; }

  /// Return the value of an expression or a quantity; empty if the value depends on memory contents or is too large.
  [[nodiscard]] number of(expression_id e);
  [[nodiscard]] number of_quantity(quantity_id id);
  [[nodiscard]] std::optional<bool> holds(const comparison& c);
  /// Returns whether all assumptions hold. Returns false if the value of an assumption's expression is unknown.
  [[nodiscard]] bool assumptions_hold(assumption_set needed);

 private:
  /// The event that can change a value.
  enum class changes : std::uint8_t { never, by_thread, by_counter };
  struct known_number {
    std::uint64_t when = 0;  // the value of times_ for the quantity's `changes` at the time of the computation
    number value;
  };
  /// An expression in which numbers replace all subexpressions that never change.
  struct folded {
    struct term {
      std::int64_t factor = 0;
      product of;
    };
    enum class state : std::uint8_t { unseen, terms, unknown, too_large } is = state::unseen;
    std::vector<term> terms;
  };
  [[nodiscard]] changes changes_of(quantity_id id);
  [[nodiscard]] const folded& fold(expression_id e);
  [[nodiscard]] number of_large(expression_id e);
  [[nodiscard]] number compute(const quantity& q);
  [[nodiscard]] number of_node(const quantity& q);

  const kernel_analysis& kernel_;
  expressions& table_;
  std::function<number(std::uint32_t)> address_of_;
  const thread_place* place_ = nullptr;
  std::vector<known_number> known_;
  std::vector<std::optional<changes>> changes_;
  std::deque<folded> folded_;  // by expression; a deque, so that references stay valid
  std::array<std::uint64_t, 3> times_{1, 1, 1};
  bool guesses_ = false;
};

/// Returns the result of a node (quantity::kind) for these values of its operands.
[[nodiscard]] std::int64_t result_of(const quantity& node, std::span<const __int128> operands);

/// Returns the value of a parameter of a launch. `q` is the quantity of this parameter.
[[nodiscard]] __int128 parameter_of(const quantity& q, const std::uint8_t* parameters);

/// Returns the size or index along an axis: x, y or z for 0, 1 or 2.
[[nodiscard]] std::uint32_t index_of(const dimensions& d, std::size_t axis);

/// Returns the `count` low bits of a number.
[[nodiscard]] std::uint64_t low_bits(__int128 value, unsigned count);

}  // namespace hpe::ptx::analysis
