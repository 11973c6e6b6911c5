#pragma once

/// The plans for a launch that a decision compares: cuts of its grid, with its arrays as they lie and where they would
/// better lie.

#include <span>
#include <string>
#include <vector>

#include "runtime/spread/cost.h"
#include "runtime/spread/decision.h"
#include "runtime/spread/kernel_model.h"
#include "runtime/spread/placing.h"
#include "runtime/spread/traffic.h"

namespace hpe::spread {

/// The share of the time to which spreading or moving must bring it.
inline constexpr double worth_while = 0.95;

struct plan {
  std::string name;
  cut how;
  std::vector<placement> moves;              // of each allocation
  std::vector<std::vector<home_run>> homes;  // that they lead to
  std::vector<bool> replicated;
  cost predicted;
  double move_seconds = 0;  // copies included
  double copy_seconds = 0;  // of new replicas
  double seconds = 0;       // predicted, with the launch's share of the copies
  [[nodiscard]] bool moves_arrays() const;
};

/// All that is compared for one launch.
class comparison_of_plans {
 public:
  /// launches_of_a_copy: how many launches use a replica before it is outdated. Keeps references to `arrays` and `m`.
  comparison_of_plans(const kernel_model& kernel, const launch& l, std::span<const allocation* const> arrays,
                      const machine& m, const sample_size& size, double launches_of_a_copy);

  [[nodiscard]] const plan& fastest() const;
  /// Of the plans with all arrays as they lie.
  [[nodiscard]] const plan& fastest_without_moves() const;
  /// A plan whose prediction is about as good as that of the fastest, with copies in the place of remote reads; else
  /// the fastest.
  [[nodiscard]] const plan& with_copies(const plan& best) const;
  [[nodiscard]] decision decision_for(const plan& chosen, const kernel_model& kernel) const;
  /// The time with all that can move dealt out by granules: that of a launch whose arrays lie for another kernel.
  [[nodiscard]] double seconds_elsewhere(const cut& c) const;

 private:
  [[nodiscard]] device_number most_common_home() const;
  [[nodiscard]] cost cost_of(const plan& p) const;
  void add(const cut& c, const std::string& name);

  std::span<const allocation* const> arrays_;
  const machine& machine_;
  const double launches_of_a_copy_;
  std::vector<cut> cuts_;
  std::vector<placed_allocation> allocations_;
  std::vector<std::size_t> of_pointer_;
  traffic traffic_;
  std::vector<plan> all_;
};

}  // namespace hpe::spread
