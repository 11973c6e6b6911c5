#pragma once

/// The plans that the planner compares for a launch. A plan is a cut of the grid with the present or with better
/// placements of the arrays.

#include <span>
#include <string>
#include <vector>

#include "runtime/spread/cost.h"
#include "runtime/spread/decision.h"
#include "runtime/spread/kernel_model.h"
#include "runtime/spread/placing.h"
#include "runtime/spread/traffic.h"

namespace hpe::spread {

/// Spreading a launch or moving arrays is worthwhile only if it reduces the predicted time to less than this fraction.
inline constexpr double worth_while = 0.95;

struct plan {
  std::string name;
  cut how;
  std::vector<array_placement> moves;        // by allocation
  std::vector<std::vector<home_run>> homes;  // by allocation: the homes after the moves
  std::vector<bool> replicated;
  cost predicted;
  move_work work;           // the work of the moves
  double copy_seconds = 0;  // seconds to copy new replicas
  double seconds = 0;       // predicted seconds of the launch and its share of the copies
  [[nodiscard]] bool moves_arrays() const;
};

/// Returns the cuts of the plans: all cuts along one or more axes that give each device one part and cut no axis into
/// more parts than it has blocks. Empty for a kernel with an obstacle, or if the grid has too few blocks.
[[nodiscard]] std::vector<cut> cuts_of(const kernel_model& kernel, const dimension& grid, std::uint32_t devices);

/// All plans for one launch.
class comparison_of_plans {
 public:
  /// `launches_of_a_copy`: the number of launches that use a replica before it is outdated. `t` is the traffic of the
  /// launch, sampled for the cuts of cuts_of(). All arguments except the launch must outlive the object.
  comparison_of_plans(const kernel_model& kernel, const launch& l, std::span<const kernel_array* const> arrays,
                      const traffic& t, const machine& m, double launches_of_a_copy);

  /// Returns the fastest plan that moves or copies arrays, among the plans for several devices if is_spread, otherwise
  /// among those for one device; null if there is no such plan.
  [[nodiscard]] const plan* fastest_with_moves(bool is_spread) const;
  /// Returns the fastest of the plans that neither move nor copy arrays.
  [[nodiscard]] const plan& fastest_without_moves() const;
  /// Returns the plan for one device, with the present placement of all arrays.
  [[nodiscard]] const plan& on_one_device() const { return all_.front(); }
  /// Returns a plan with the same cut as `best` in which replicas replace more than half of the remote bytes, if the
  /// predicted time of this plan is at most 2 % longer. Otherwise, or if less than 10 % of the bytes of `best` are
  /// remote, returns `best`.
  [[nodiscard]] const plan& with_copies(const plan& best) const;
  [[nodiscard]] decision decision_for(const plan& chosen, const kernel_model& kernel) const;
  /// Returns the predicted time if the granules of all movable arrays are in the memories of the devices in turn. This
  /// is an estimate for a launch whose arrays are placed for another kernel.
  [[nodiscard]] double seconds_elsewhere(const cut& c) const;

 private:
  [[nodiscard]] device_number most_common_home() const;
  [[nodiscard]] cost cost_of(const plan& p) const;
  void add(const cut& c, const std::string& name);

  std::span<const kernel_array* const> arrays_;
  const machine& machine_;
  const traffic& traffic_;
  const double launches_of_a_copy_;
  std::vector<placed_allocation> allocations_;
  std::vector<std::size_t> of_pointer_;
  std::vector<plan> all_;
};

}  // namespace hpe::spread
