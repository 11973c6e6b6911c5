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
  kernels::field_layout layout;      ///< of the memory that holds the box
  triple place{0, 0, 0};             ///< where the first cell lies in that memory

  [[nodiscard]] kernels::cell_range all() const { return {0, cells[0], 0, cells[1], 0, cells[2]}; }
  /// Cells of the box, as cells of its memory.
  [[nodiscard]] kernels::cell_range in_memory(const kernels::cell_range& c) const {
    return {c.x0 + place[0], c.x1 + place[0], c.y0 + place[1], c.y1 + place[1], c.z0 + place[2], c.z1 + place[2]};
  }
  /// The element of a cell of the box in its memory.
  [[nodiscard]] std::int64_t index(std::int64_t x, std::int64_t y, std::int64_t z) const {
    return layout.index(x + place[0], y + place[1], z + place[2]);
  }
  /// The cells of the box that the neighbour behind a side reads.
  [[nodiscard]] kernels::cell_range face(int side) const;
  /// The cells of this box that hold the face of the neighbour behind a side.
  [[nodiscard]] kernels::cell_range rim(int side) const;
};

/// Cuts a grid; each box has memory of its own. Throws bad_input if a part would have fewer cells along a cut axis than
/// the stencil reaches.
[[nodiscard]] std::vector<box> cut_grid(const triple& cells, std::int64_t radius, const triple& parts);

/// The same boxes, all in one memory that holds the whole grid, so that none has a rim. Throws bad_input unless the
/// grid is cut into slabs: a device can hold planes of such a memory, but no parts of planes.
[[nodiscard]] std::vector<box> in_one_memory(std::vector<box> boxes, const triple& cells);

/// The cells of a box in disjoint ranges: those that neighbours wait for, and those in between.
struct order_of_work {
  std::vector<kernels::cell_range> first;
  std::vector<kernels::cell_range> then;
};
[[nodiscard]] order_of_work rims_first(const box& b);

}  // namespace hpe::fdtd
