#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "apps/command_line/bad_input.h"
#include "kernels/fdtd.h"

namespace hpe::fdtd {

using command_line::bad_input;

/// Which axes of a grid are cut: x; x and y; or all three.
enum class cut { slabs, pencils, boxes };

using triple = std::array<std::int64_t, 3>;

/// How many parts each axis is cut into: factors of `devices` that are as equal as possible, the larger ones first.
[[nodiscard]] triple arrange(int devices, cut how);

/// The six sides of a box: 2 * axis for the lower one, and one more for the upper one.
inline constexpr int sides = 6;
[[nodiscard]] constexpr int opposite(int side) { return side ^ 1; }

/// One device's part of a grid.
struct box {
  int device;
  triple origin;                     ///< its first cell
  triple cells;                      ///< how many along each axis
  std::array<int, sides> neighbour;  ///< the number of the box behind each side; -1: the end of the grid
  kernels::field_layout layout;

  [[nodiscard]] kernels::cell_range all() const { return {0, cells[0], 0, cells[1], 0, cells[2]}; }
  /// The cells of the box that the neighbour behind a side reads.
  [[nodiscard]] kernels::cell_range face(int side) const;
  /// The cells of this box that hold the face of the neighbour behind a side.
  [[nodiscard]] kernels::cell_range rim(int side) const;
};

/// Cuts a grid. Throws bad_input if a part would have fewer cells along a cut axis than the stencil reaches.
[[nodiscard]] std::vector<box> cut_grid(const triple& cells, std::int64_t radius, const triple& parts);

/// The cells of a box in disjoint ranges: those that neighbours wait for, and those in between.
struct order_of_work {
  std::vector<kernels::cell_range> first;
  std::vector<kernels::cell_range> then;
};
[[nodiscard]] order_of_work rims_first(const box& b);

}  // namespace hpe::fdtd
