#pragma once

/// Boxes of a grid for the wave stencil (hpe wave): a layout with a rim of the neighbours' cells on each side, for the
/// steps of kernels/wave_parameters.h, and the kernels that copy the faces that boxes exchange.

#include <stdint.h>

#include "hpe/hpe.h"
#include "kernels/wave_parameters.h"

namespace hpe::kernels {

/// Returns a layout of nx * ny * nz cells, with z fastest in memory and x slowest. On each side, `radius` more cells
/// hold the neighbours' cells, or zeros at the ends of the grid.
[[nodiscard]] constexpr field_layout make_box_layout(int64_t nx, int64_t ny, int64_t nz, int64_t radius) {
  const int64_t lead = row_multiple, row = whole_vectors(lead + nz + radius), plane = (ny + 2 * radius) * row;
  return {nx, ny, nz, radius, lead, row, plane, radius * plane + radius * row + lead};
}

/// The cells [x0, x1) x [y0, y1) x [z0, z1).
struct cell_range {
  int64_t x0, x1, y0, y1, z0, z1;

  [[nodiscard]] constexpr int64_t count() const { return (x1 - x0) * (y1 - y0) * (z1 - z0); }
};

/// Sets the cells that a step computes, and how a launch cuts them into tiles. multiprocessors: those of the GPU; 0 for
/// soft devices.
template <class T>
constexpr void set_cells(wave_step<T>& p, const cell_range& c, int64_t multiprocessors) {
  p.across = {c.y0, c.y1, c.z0, c.z1};
  p.part = multiprocessors == 0 ? make_slab(p.layout, p.across, c.x0, c.x1, sizeof(T))
                                : make_cuda_slab(p.across, p.ends, c.x0, c.x1, multiprocessors);
}

/// Copies the cells of a box between the field and `packed`, in which z is fastest: kernel fdtd_pack copies to
/// `packed`, kernel fdtd_unpack copies back.
template <class T>
struct fdtd_face {
  T* packed;
  T* field;
  field_layout layout;
  cell_range cells;
};
template <class T>
struct fdtd_pack : fdtd_face<T> {};
template <class T>
struct fdtd_unpack : fdtd_face<T> {};

/// Returns the shape of a launch of fdtd_pack and fdtd_unpack, on any device.
template <class T>
[[nodiscard]] constexpr hpeShape face_shape(const fdtd_face<T>& p) {
  constexpr int64_t cells_each = 4096, most = 1024;
  const int64_t tiles = p.cells.count() / cells_each + 1;
  return {{uint32_t(tiles < most ? tiles : most), 1, 1}, {uint32_t(march_threads), 1, 1}};
}

}  // namespace hpe::kernels
