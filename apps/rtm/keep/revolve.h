#pragma once

/// Optimal checkpointing (Griewank and Walther, Algorithm 799: Revolve, ACM TOMS 26, 2000): the states of a computation
/// become available in descending order, with the fewest repeated steps, although only a few of the `count` states can
/// be saved at the same time.

#include <cstdint>
#include <vector>

namespace hpe::rtm {

/// One action of a schedule.
struct revolve_action {
  enum class kind {
    load,     ///< state `number`, loaded from `slot`, becomes the present state
    advance,  ///< the present state becomes state `number`
    save,     ///< the present state, `number`, is saved in `slot`
    use       ///< the present state, `number`, is used
  };
  kind what;
  std::int64_t number;
  std::int64_t slot = 0;
};

/// A schedule in two parts. The first pass visits all states in ascending order and saves some of them, as `saves`
/// states. `back` then uses all states in descending order.
struct revolve_schedule {
  std::vector<revolve_action> saves;  ///< actions of the first pass, in ascending order of states; all are of kind save
  std::vector<revolve_action> back;

  /// Returns the number of steps from state to state that `back` repeats.
  [[nodiscard]] std::int64_t repeated() const;
};

/// Makes a schedule that uses slots 0 to checkpoints - 1. `count` and `checkpoints` must be at least 1.
[[nodiscard]] revolve_schedule revolve(std::int64_t count, std::int64_t checkpoints);

}  // namespace hpe::rtm
