#pragma once

/// Finds the placement of an allocation that leaves the fewest bytes remote, for one cut of a launch.

#include "runtime/spread/cost.h"

namespace hpe::spread {

/// `users` are the pointers of the kernel that point into the allocation.
struct placed_allocation {
  const allocation* what = nullptr;
  std::vector<std::uint32_t> users;
  bool may_replicate = false;  // the launch computes the same result with copies of the allocation
};

/// The placement with the fewest remote bytes among stay, one, parts, cyclic and replicated; if the difference is
/// small, the simpler placement.
[[nodiscard]] placement best_place(const placed_allocation& a, const traffic& t, const cut& c, const machine& m);

/// The placement of a new allocation before any kernel has used it: in parts on all devices if each part has several
/// granules, otherwise on device 0.
[[nodiscard]] placement first_place(std::uint64_t bytes, std::uint64_t granule, const machine& m);

/// The number of bytes that must be copied so that each device has a replica.
[[nodiscard]] double bytes_to_copy(const allocation& a, const machine& m);
/// The work of a move to these homes; none if the allocation has these homes.
[[nodiscard]] move_work work_of_move(const allocation& a, const std::vector<home_run>& homes);

}  // namespace hpe::spread
