#pragma once

/// The kernels of the wave stencil (hpe wave): a box of cells with a rim of its neighbours' cells, steps of orders 2 to
/// 16, and faces that boxes exchange. Programs and kernel bodies include this header, like kernels/wave.h.
///
/// A box has nx * ny * nz cells; z is fastest in memory and x slowest. Around them lie `radius` cells on each side,
/// which hold the neighbours' cells, or zeros at the ends of the grid.
///
/// Every cell is computed by the same operations in the same order wherever boxes end, so no bit of the results depends
/// on how a grid is divided.

#include <stdint.h>

#include "hpe/hpe.h"
#include "kernels/columns.h"

namespace hpe::kernels {

/// Half the widest stencil: order 16.
inline constexpr int64_t fdtd_most_radius = 8;

/// The weight of the cells at distance k in the second derivative of order 2 radius, for spacing 1.
[[nodiscard]] constexpr double fdtd_weight(int64_t radius, int64_t k) {
  if (k == 0) {
    double sum = 0;
    for (int64_t i = 1; i <= radius; ++i) sum -= 2 * fdtd_weight(radius, i);
    return sum;
  }
  // 2 (-1)^(k+1) radius!^2 / (k^2 (radius - k)! (radius + k)!)
  double w = k % 2 == 1 ? 2.0 : -2.0;
  for (int64_t i = 1; i <= k; ++i) w *= double(radius - k + i) / double(radius + i);
  return w / double(k * k);
}

/// The memory layout of the cells of a box. Counts and distances are in elements.
struct box_layout {
  int64_t nx, ny, nz;
  int64_t radius;
  int64_t lead;   ///< elements before the first cell of a row
  int64_t row;    ///< from a cell to its neighbour in y
  int64_t plane;  ///< from a cell to its neighbour in x

  [[nodiscard]] constexpr int64_t index(int64_t x, int64_t y, int64_t z) const {
    return (x + radius) * plane + (y + radius) * row + lead + z;
  }
  /// Elements of the whole array.
  [[nodiscard]] constexpr int64_t size() const { return (nx + 2 * radius) * plane; }
};

[[nodiscard]] constexpr box_layout make_box_layout(int64_t nx, int64_t ny, int64_t nz, int64_t radius) {
  constexpr int64_t vector = 16;  // elements in 64 bytes
  const int64_t row = (vector + nz + radius + vector - 1) / vector * vector;
  return {nx, ny, nz, radius, vector, row, (ny + 2 * radius) * row};
}

/// The cells [x0, x1) x [y0, y1) x [z0, z1).
struct cell_range {
  int64_t x0, x1, y0, y1, z0, z1;

  [[nodiscard]] constexpr int64_t count() const { return (x1 - x0) * (y1 - y0) * (z1 - z0); }
};

/// One time step without damping on some cells of a box:
///
///   next = 2 now - next + speed * laplacian(now),   speed = (c dt)^2
///
/// `next` holds the step before `now` on entry and the step after it on return. Launched with fdtd_shape. On GPUs z0 is
/// a multiple of 4, and up to three elements of next behind z1 are overwritten: rim cells, which are received again
/// before they are read, or zeros, which stay zero.
template <class T>
struct fdtd_step {
  T* next;
  const T* now;
  const T* speed;
  box_layout layout;
  cell_range cells;
  column_cut cut;                  ///< on GPUs
  T centre;                        ///< weight of the cell itself, over all axes
  T weights[3][fdtd_most_radius];  ///< x, y, z; at distances 1 to radius
};

/// fdtd_step as a separate kernel for each order: fdtd_step_2_f32 to fdtd_step_16_f32. The order is twice the radius of
/// the layout.
template <int64_t order>
struct fdtd_step_f32 : fdtd_step<float> {};

/// Tiles of soft devices: planes by rows.
inline constexpr int64_t fdtd_tile_x = 8, fdtd_tile_y = 16;

/// The shape of a launch of fdtd_step. multiprocessors: 0 for soft devices. Sets p.cut.
template <class T>
[[nodiscard]] constexpr hpeShape fdtd_shape(fdtd_step<T>& p, int64_t multiprocessors) {
  const auto parts = [](int64_t all, int64_t each) { return uint32_t((all + each - 1) / each); };
  const cell_range& c = p.cells;
  if (multiprocessors == 0) return {{parts(c.x1 - c.x0, fdtd_tile_x), parts(c.y1 - c.y0, fdtd_tile_y), 1}, {1, 1, 1}};
  const int64_t columns = int64_t(parts(c.y1 - c.y0, march_rows)) * parts(c.z1 - c.z0, march_cells);
  p.cut = cut_columns(columns, c.x1 - c.x0, multiprocessors);
  return {{count_tiles(p.cut, columns, c.x1 - c.x0), 1, 1}, {uint32_t(march_threads), 1, 1}};
}

/// Cells of a box, packed with z fastest: packed = cells of the field (fdtd_pack), or the other way round
/// (fdtd_unpack).
template <class T>
struct fdtd_face {
  T* packed;
  T* field;
  box_layout layout;
  cell_range cells;
};
template <class T>
struct fdtd_pack : fdtd_face<T> {};
template <class T>
struct fdtd_unpack : fdtd_face<T> {};

/// The shape of a launch of fdtd_pack and fdtd_unpack, on any device.
template <class T>
[[nodiscard]] constexpr hpeShape fdtd_shape(const fdtd_face<T>& p) {
  constexpr int64_t cells_each = 4096, most = 1024;
  const int64_t tiles = p.cells.count() / cells_each + 1;
  return {{uint32_t(tiles < most ? tiles : most), 1, 1}, {uint32_t(march_threads), 1, 1}};
}

}  // namespace hpe::kernels
