#pragma once

/// The placement of an array: which devices' memories contain its bytes. Finds the placement with the fewest remote
/// bytes for one cut of a launch (grid_cut.h), and the placement of a new array.

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/spread/cost.h"

namespace hpe::spread {

struct array_placement {
  enum class kind : std::uint8_t {
    stay,        // the array stays in its present memory; also for host memory and arrays that cannot move
    one,         // the memory of device `home` contains the whole array
    parts,       // device d has the bytes bounds[d] <= offset < bounds[d + 1]; bounds are multiples of the granule
    cyclic,      // the devices' memories contain runs of `run` bytes (whole granules) in turn
    replicated,  // each device's memory contains a replica; only for arrays that the kernel does not write
  };
  kind how = kind::stay;
  device_number home = 0;
  std::vector<std::uint64_t> bounds;
  std::uint64_t run = 0;
  bool operator==(const array_placement&) const = default;
};

/// Returns the homes of an allocation's bytes under a placement. For the placements stay and replicated, these are the
/// present homes.
[[nodiscard]] std::vector<home_run> homes_under(const array_placement& p, const kernel_array& a, std::uint32_t devices);
/// Returns the description of a placement for reports, for example "in 4 parts".
[[nodiscard]] std::string words_of(const array_placement& p);

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
[[nodiscard]] array_placement best_placement(const placed_allocation& a, const traffic& t, const cut& c,
                                             const machine& m);

/// Returns the placement of a new allocation before any kernel has used it: parts on all devices if each part has at
/// least four granules, otherwise device 0.
[[nodiscard]] array_placement first_placement(std::uint64_t bytes, std::uint64_t granule, const machine& m);

/// Returns the number of bytes that hpe must copy to give each device a replica.
[[nodiscard]] double bytes_to_copy(const kernel_array& a, const machine& m);
/// Returns the work of a move to `homes`. The result is none() if the allocation already has these homes.
[[nodiscard]] move_work work_of_move(const kernel_array& a, const std::vector<home_run>& homes);

}  // namespace hpe::spread
