#pragma once

/// The cut of a launch's grid into parts: the blocks that each device runs.

#include <array>
#include <cstdint>
#include <vector>

#include "runtime/spread/model/launch.h"

namespace hpe::spread {

/// The blocks with first <= index < first + count along each axis.
struct subgrid {
  dimension first{0, 0, 0}, count{0, 0, 0};
  [[nodiscard]] std::uint64_t blocks() const { return std::uint64_t{count[0]} * count[1] * count[2]; }
  /// Returns the indices of the last block. There must be a block.
  [[nodiscard]] dimension last() const {
    return {first[0] + count[0] - 1, first[1] + count[1] - 1, first[2] + count[2] - 1};
  }
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
/// Returns the number of the part that contains a block.
[[nodiscard]] std::size_t part_of(const cut& c, const dimension& block);

}  // namespace hpe::spread
