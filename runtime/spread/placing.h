#pragma once

/// Finds the placement of an allocation with the fewest remote bytes, for one cut of a launch (decision.h).

#include "runtime/spread/cost.h"

namespace hpe::spread {

/// An allocation. `users` are the pointers of the kernel that point into it.
struct placed_allocation {
  const kernel_array* what = nullptr;
  std::vector<std::uint32_t> users;
  bool may_replicate = false;  // whether the launch computes the same result with replicas of the allocation
};

/// Returns the placement with the fewest remote bytes among stay, one, parts, cyclic and replicated. If the difference
/// is at most 1 % of the bytes that the launch uses of the allocation, returns the simpler placement. Only for a spread
/// launch does the function consider parts, cyclic and replicated; replicated also requires that each device can hold
/// the replica, and that more than 5 % of the bytes would otherwise be remote.
[[nodiscard]] array_placement best_place(const placed_allocation& a, const traffic& t, const cut& c, const machine& m);

/// Returns the placement of a new allocation before any kernel has used it: parts on all devices if each part has at
/// least four granules, otherwise device 0.
[[nodiscard]] array_placement first_place(std::uint64_t bytes, std::uint64_t granule, const machine& m);

/// Returns the number of bytes that hpe must copy to give each device a replica.
[[nodiscard]] double bytes_to_copy(const kernel_array& a, const machine& m);
/// Returns the work of a move to `homes`. The result is none() if the allocation already has these homes.
[[nodiscard]] move_work work_of_move(const kernel_array& a, const std::vector<home_run>& homes);

}  // namespace hpe::spread
