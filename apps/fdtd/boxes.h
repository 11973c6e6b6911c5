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

/// Returns the numbers of parts into which the axes are cut: factors of `devices` that are nearly equal, usually in
/// descending order.
[[nodiscard]] triple arrange(int devices, cut how);

/// The number of sides of a box. Along an axis, the lower side has the number 2 * axis, and the upper side 2 * axis +
/// 1.
inline constexpr int sides = 6;
[[nodiscard]] constexpr int opposite(int side) { return side ^ 1; }

/// One device's part of a grid.
struct box {
  int device;
  triple origin;                     ///< the box's first cell in the grid
  triple cells;                      ///< number of cells along each axis
  std::array<int, sides> neighbour;  ///< the number of the box beyond each side; -1: the grid ends there
  kernels::field_layout layout;      ///< layout of the memory that holds the box
  triple place{0, 0, 0};             ///< position of the first cell in that memory

  [[nodiscard]] kernels::cell_range all() const { return {0, cells[0], 0, cells[1], 0, cells[2]}; }
  /// Converts a range of the box's cells to cells of its memory.
  [[nodiscard]] kernels::cell_range in_memory(const kernels::cell_range& c) const {
    return {c.x0 + place[0], c.x1 + place[0], c.y0 + place[1], c.y1 + place[1], c.z0 + place[2], c.z1 + place[2]};
  }
  /// Returns the index of a cell's element in the box's memory.
  [[nodiscard]] std::int64_t index(std::int64_t x, std::int64_t y, std::int64_t z) const {
    return layout.index(x + place[0], y + place[1], z + place[2]);
  }
  /// Returns the cells of the box that the neighbour beyond a side reads.
  [[nodiscard]] kernels::cell_range face(int side) const;
  /// Returns the halo cells of this box that hold the face of the neighbour beyond a side.
  [[nodiscard]] kernels::cell_range rim(int side) const;
};

/// Cuts a grid into boxes, each with memory of its own. Throws bad_input if a part would have fewer cells along a cut
/// axis than the stencil's radius.
[[nodiscard]] std::vector<box> cut_grid(const triple& cells, std::int64_t radius, const triple& parts);

/// Changes boxes that cut_grid has made, so that all boxes share one array that holds the whole grid, and returns them.
/// No box then has a rim. Throws bad_input unless the grid is cut into slabs, because a device can hold whole planes of
/// that array, but not parts of planes.
[[nodiscard]] std::vector<box> in_one_memory(std::vector<box> boxes, const triple& cells);

/// The cells of a box in disjoint ranges. `first` holds the cells for which neighbours wait, and `then` holds all other
/// cells.
struct order_of_work {
  std::vector<kernels::cell_range> first;
  std::vector<kernels::cell_range> then;
};
[[nodiscard]] order_of_work rims_first(const box& b);

}  // namespace hpe::fdtd
