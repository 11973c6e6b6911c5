#pragma once

/// The bodies for soft devices of the kernels of kernels/fdtd.h.

#include "hpe/kernel.h"
#include "kernels/fdtd.h"

namespace {

using namespace hpe::kernels;

// Calls row(index in the packed cells, index in the field, count) for each row of the given tiles. All tiles of the
// grid have about the same number of rows.
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
