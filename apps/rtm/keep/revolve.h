#pragma once

/// Optimal checkpointing (Griewank and Walther, Algorithm 799: Revolve, ACM TOMS 26, 2000): a computation of `count`
/// states, of which only a few can be kept at once, gives its states in falling order with the fewest repeated steps.

#include <cstdint>
#include <vector>

namespace hpe::rtm {

/// One action of a schedule.
struct revolve_action {
  enum class kind {
    load,     ///< state `number` becomes the present one, from `slot`
    advance,  ///< the present state becomes state `number`
    save,     ///< the present state, `number`, goes into `slot`
    use       ///< the present state, `number`, is used
  };
  kind what;
  std::int64_t number;
  std::int64_t slot = 0;
};

/// A schedule in two parts. The first pass visits all states in rising order and saves those in `saves`. `back` uses
/// the states in falling order.
struct revolve_schedule {
  std::vector<revolve_action> saves;  ///< of the first pass, in rising order of states; all are of kind save
  std::vector<revolve_action> back;

  /// Steps from state to state that `back` repeats.
  [[nodiscard]] std::int64_t repeated() const;
};

/// Uses slots 0 to checkpoints - 1. Needs count >= 1 and checkpoints >= 1.
[[nodiscard]] revolve_schedule revolve(std::int64_t count, std::int64_t checkpoints);

}  // namespace hpe::rtm
