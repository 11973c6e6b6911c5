#pragma once

/// The plans that the planner compares for a launch. A plan is a cut of the grid with the present or with better
/// placements of the arrays. An outlook contains the best of these plans; another thread can compute it.

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/spread/array_placement.h"
#include "runtime/spread/cost.h"
#include "runtime/spread/decision.h"
#include "runtime/spread/model/kernel_model.h"
#include "runtime/spread/traffic.h"
#include "runtime/spread/way_record.h"

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
class plan_comparison {
 public:
  /// `launches_of_a_copy`: the number of launches that use a replica before it is outdated. `t` is the traffic of the
  /// launch, sampled for the cuts of cuts_of(). All arguments except the launch must outlive the object.
  plan_comparison(const kernel_model& kernel, const launch& l, std::span<const kernel_array* const> arrays,
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
  /// Estimates the time of a launch whose arrays are placed for another kernel; `best` is the fastest plan. If `best`
  /// is spread, the granules of all movable arrays are in the memories of the devices in turn. Otherwise, each array is
  /// in one part on each device, and the launch has the best cut for these homes.
  [[nodiscard]] double seconds_elsewhere(const plan& best) const;

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

/// The traffic of sampled blocks. Does not depend on the homes of the arrays.
struct sampled_traffic {
  std::string scalars;  // the parameters of the sampled launch (asked_launch::scalars)
  traffic what;

  [[nodiscard]] static std::shared_ptr<const sampled_traffic> of(const asked_launch& q, const machine& m,
                                                                 const sample_size& size);
};

/// The plans for one layout of the arrays.
struct outlook {
  /// A plan that moves or copies arrays.
  struct move {
    decision how;
    double seconds = 0;  // predicted seconds of a launch and its share of the copies; 0 if there is no such plan
    move_work work;      // the work of moving arrays to other homes
    double copying = 0;  // seconds to copy the arrays that get replicas
    // If the plan only replaces remote reads by replicas: a lower bound, in seconds, of what a launch without the plan
    // is assumed to lose. Otherwise 0.
    double least_loss = 0;
    [[nodiscard]] double price(const move_price& of) const { return of.seconds(work) + copying; }
  };
  std::string scalars;        // the parameters of the planned launch (asked_launch::scalars)
  decision stay, alone;       // the fastest plan without moves, and the plan for one device
  std::array<move, 2> moves;  // by way: the fastest plan with moves or copies
  bool was_measured = false;  // whether alone.reason mentions measured launches
  double stake =
      0;  // seconds by which a launch is faster with the best placement than with arrays placed for another kernel

  /// Computes the plans. `launches_of_a_copy`: see plan_comparison.
  [[nodiscard]] static outlook of(const asked_launch& q, const sampled_traffic& t, const machine& m,
                                  double launches_of_a_copy);

  [[nodiscard]] move& to(launch_way w) { return moves[static_cast<std::size_t>(w)]; }
  /// Returns whether moving the arrays to several devices is predicted to make the launch faster.
  [[nodiscard]] bool may_be_spread();
};

/// An outlook that a planner needs. Contains copies of all inputs except the kernel.
class outlook_request {
 public:
  /// The tables' keys of the traffic and of the outlook, and the planner's number of the kernel.
  struct keys {
    std::string of_traffic, of_outlook;
    std::uint64_t kernel_number = 0;
  };
  outlook_request(const asked_launch& q, const machine& m, const sample_size& size, double launches_of_a_copy,
                  keys where, std::shared_ptr<const sampled_traffic> known);

  [[nodiscard]] const kernel_model& kernel() const noexcept { return kernel_; }
  /// Computes the outlook. Any thread may call this function, one thread at a time; the kernel must exist until the
  /// function returns. If host memory is too short, computes nothing.
  void compute();

 private:
  friend class planner;

  const kernel_model& kernel_;
  const dimension grid_, block_;
  const std::vector<std::byte> parameters_;
  std::vector<std::optional<kernel_array>> arrays_;
  const machine machine_;
  const sample_size size_;
  const double launches_of_a_copy_;
  const keys keys_;

  std::shared_ptr<const sampled_traffic> traffic_;
  std::unique_ptr<outlook> made_;  // null before compute(), and if host memory was too short
  double seconds_ = 0;             // how long compute() took
  bool has_sampled_ = false;       // whether this time includes the sampling of the traffic
};

}  // namespace hpe::spread
