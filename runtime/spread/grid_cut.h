#pragma once

/// The cut of a launch's grid into parts: the blocks that each device runs.

#include <array>
#include <cstdint>
#include <vector>

#include "runtime/spread/model/launch.h"

namespace hpe::spread {

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
/// Returns the number of the part that contains a block.
[[nodiscard]] std::size_t part_of(const cut& c, const dimension& block);

}  // namespace hpe::spread
