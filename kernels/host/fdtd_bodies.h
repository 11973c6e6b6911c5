#pragma once

/// The bodies of the kernels of kernels/fdtd.h for soft devices. The operations of a cell and their order are those of
/// kernels/cuda/wave_march.cuh.

#include "hpe/kernel.h"
#include "kernels/fdtd.h"
#include "kernels/host/arithmetic.h"

namespace {

using namespace hpe::kernels;

template <int64_t radius>
void step_row(const fdtd_step<float>& p, int64_t x, int64_t y) {
  const int64_t first = p.layout.index(x, y, p.cells.z0), count = p.cells.z1 - p.cells.z0;
  const int64_t plane = p.layout.plane, row = p.layout.row;
  float* __restrict next = p.next + first;
  const float* __restrict now = p.now + first;
  const float* __restrict speed = p.speed + first;
  const float centre = p.centre;
  float w[3][radius];
  for (int axis = 0; axis < 3; ++axis)
    for (int64_t k = 0; k < radius; ++k) w[axis][k] = p.weights[axis][k];

#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) {
    const float* n = now + i;
    float along_z = multiply_add(w[2][0], n[-1] + n[1], centre * *n);
    float along_x = w[0][0] * (n[-plane] + n[plane]);
    float along_y = w[1][0] * (n[-row] + n[row]);
#pragma GCC unroll 8
    for (int64_t k = 2; k <= radius; ++k) {
      along_z = multiply_add(w[2][k - 1], n[-k] + n[k], along_z);
      along_x = multiply_add(w[0][k - 1], n[-k * plane] + n[k * plane], along_x);
      along_y = multiply_add(w[1][k - 1], n[-k * row] + n[k * row], along_y);
    }
    next[i] = multiply_add(speed[i], along_z + along_x + along_y, *n + (*n - next[i]));
  }
}

template <int64_t order>
inline void run(const fdtd_step_f32<order>& p, const hpeTiles& tiles) {
  const cell_range& c = p.cells;
  for (uint64_t tile = tiles.begin; tile < tiles.end; ++tile) {
    const int64_t x0 = c.x0 + int64_t(tile % tiles.grid[0]) * fdtd_tile_x;
    const int64_t y0 = c.y0 + int64_t(tile / tiles.grid[0]) * fdtd_tile_y;
    const int64_t x1 = x0 + fdtd_tile_x < c.x1 ? x0 + fdtd_tile_x : c.x1;
    const int64_t y1 = y0 + fdtd_tile_y < c.y1 ? y0 + fdtd_tile_y : c.y1;
    for (int64_t x = x0; x < x1; ++x)
      for (int64_t y = y0; y < y1; ++y) step_row<order / 2>(p, x, y);
  }
}

// Calls row(place in the packed cells, place in the field, count) for each row of the tiles. Tiles have equal numbers
// of rows.
template <class Row>
void for_face_rows(const fdtd_face<float>& p, const hpeTiles& tiles, Row row) {
  const cell_range& c = p.cells;
  const int64_t ny = c.y1 - c.y0, nz = c.z1 - c.z0, rows = (c.x1 - c.x0) * ny, all = tiles.grid[0];
  for (int64_t r = rows * int64_t(tiles.begin) / all; r < rows * int64_t(tiles.end) / all; ++r)
    row(r * nz, p.layout.index(c.x0 + r / ny, c.y0 + r % ny, c.z0), nz);
}

inline void run(const fdtd_pack<float>& p, const hpeTiles& tiles) {
  for_face_rows(p, tiles, [&p](int64_t packed, int64_t cell, int64_t count) {
    for (int64_t i = 0; i < count; ++i) p.packed[packed + i] = p.field[cell + i];
  });
}

inline void run(const fdtd_unpack<float>& p, const hpeTiles& tiles) {
  for_face_rows(p, tiles, [&p](int64_t packed, int64_t cell, int64_t count) {
    for (int64_t i = 0; i < count; ++i) p.field[cell + i] = p.packed[packed + i];
  });
}

}  // namespace
