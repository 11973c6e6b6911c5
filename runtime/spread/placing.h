#pragma once

/// The place of an allocation that leaves the fewest bytes remote, for one cut of a launch.

#include "runtime/spread/cost.h"

namespace hpe::spread {

/// `users` are the pointers of the kernel that point into the allocation.
struct placed_allocation {
  const allocation* what = nullptr;
  std::vector<std::uint32_t> users;
  bool may_replicate = false;  // the launch computes the same with copies of it
};

/// Of stay, one device, parts, cyclic and replicated the one with the fewest remote bytes; the simpler one where the
/// difference is small.
[[nodiscard]] placement best_place(const placed_allocation& a, const traffic& t, const cut& c, const machine& m);

/// Bytes that have to be copied to another device.
[[nodiscard]] double bytes_to_move(const allocation& a, const placement& p, const std::vector<home_run>& homes,
                                   const machine& m);

}  // namespace hpe::spread
