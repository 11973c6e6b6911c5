#pragma once

/// The planner's decision about a launch: which devices run which blocks of the grid, and which memory should contain
/// the launch's arrays.

#include <string>
#include <vector>

#include "runtime/spread/launch.h"

namespace hpe::spread {

/// The blocks with first <= index < first + count along each axis.
struct subgrid {
  dimension first{0, 0, 0}, count{0, 0, 0};
  [[nodiscard]] std::uint64_t blocks() const { return std::uint64_t{count[0]} * count[1] * count[2]; }
  [[nodiscard]] bool contains(const dimension& block) const;
  bool operator==(const subgrid&) const = default;
};

/// The parts of a grid: each block is in exactly one part.
struct cut {
  std::array<std::uint32_t, 3> parts_along{1, 1, 1};  // the number of parts along each axis
  std::vector<subgrid> parts;                         // by device; a part may have no blocks
  [[nodiscard]] bool is_spread() const { return parts_along[0] * parts_along[1] * parts_along[2] > 1; }
};

/// Splits the grid into parts_along[0] * parts_along[1] * parts_along[2] parts. Along each axis, the parts' numbers of
/// blocks differ by at most one. Parts are numbered along x first.
[[nodiscard]] cut cut_grid(const dimension& grid, const std::array<std::uint32_t, 3>& parts_along);
/// Cuts the grid into about equal parts along the last axis that has several blocks, because arrays in row order are
/// usually divided along this axis. If the grid has fewer blocks than there are devices, the last devices get no
/// blocks.
[[nodiscard]] cut cut_evenly(const dimension& grid, std::uint32_t devices);
/// Returns a cut that leaves the whole grid on one device.
[[nodiscard]] cut whole_grid(const dimension& grid, std::uint32_t devices, device_number on);

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

/// One of the plans that the planner compared, and the predicted time of this plan.
struct alternative {
  std::string name;    // for example "device 0", "cut along y" or "cut along y, arrays moved"
  double seconds = 0;  // predicted seconds of the kernel, including its launches
  double move_seconds =
      0;  // predicted seconds of the moves and copies before the kernel, which later launches need not repeat
  double remote_bytes = 0, local_bytes = 0;
  double imbalance = 0;  // blocks of the largest part / mean blocks of a part - 1
};

/// The decision about one pointer of the kernel (kernel_model::pointers).
struct array_decision {
  array_placement move_to;   // the placement to establish before this launch; `stay` for no move
  bool use_replica = false;  // whether each device reads its own replica of the array
};

struct decision {
  cut how;
  std::vector<array_decision> arrays;
  double seconds = 0;         // predicted seconds of this launch
  double seconds_on_one = 0;  // predicted seconds of the fastest plan for one device, after its moves
  std::vector<alternative> alternatives;
  std::string reason;  // why the launch is spread in this way, or why it stays on one device

  [[nodiscard]] bool is_spread() const { return how.is_spread(); }
  /// Returns whether the decision moves arrays to other homes. Replicas do not count.
  [[nodiscard]] bool gives_homes() const;
  [[nodiscard]] bool uses_copies() const;
  [[nodiscard]] decision without_moves() const;
};

}  // namespace hpe::spread
