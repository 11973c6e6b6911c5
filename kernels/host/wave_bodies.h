#pragma once

/// The bodies of the kernels of kernels/wave.h for soft devices.

#include "kernels/host/arithmetic.h"
#include "kernels/wave.h"

namespace {

using namespace hpe::kernels;

inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
inline int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

// Distances in elements from a row to its eight neighbours in y.
struct neighbours {
  int64_t before[stencil_radius];
  int64_t after[stencil_radius];
};

inline neighbours rows_about(const field_layout& layout, y_ends ends, int64_t y) {
  neighbours n{};
  for (int64_t k = 1; k <= stencil_radius; ++k) {
    int64_t before = y - k, after = y + k;
    if (ends == y_ends::periodic) {
      before = (before % layout.ny + layout.ny) % layout.ny;
      after %= layout.ny;
    }
    n.before[k - 1] = (before - y) * layout.row;
    n.after[k - 1] = (after - y) * layout.row;
  }
  return n;
}

// Steps one row of several planes at once, so that a value loaded for one plane is also the x neighbour in the others.
// Cells are rounded up to whole vectors: the elements behind the cells are zero and stay zero, because their speed is
// zero.
template <class T, bool with_y, int planes>
void step_rows(const wave_step<T>& p, int64_t x, int64_t y0, const neighbours& y) {
  const int64_t first = p.layout.index(x, y0, 0);
  const int64_t plane = p.layout.plane;
  T* next = p.next + first;
  const T* now = p.now + first;
  const T* speed = p.speed + first;
  const T* taper = p.taper_z;
  const int64_t count = (p.layout.nz + row_multiple - 1) / row_multiple * row_multiple;
  const T centre = p.centre;
  const T x1 = p.weights[0][0], x2 = p.weights[0][1], x3 = p.weights[0][2], x4 = p.weights[0][3];
  const T y1 = p.weights[1][0], y2 = p.weights[1][1], y3 = p.weights[1][2], y4 = p.weights[1][3];
  const T z1 = p.weights[2][0], z2 = p.weights[2][1], z3 = p.weights[2][2], z4 = p.weights[2][3];
  const int64_t ya1 = y.before[0], yb1 = y.after[0], ya2 = y.before[1], yb2 = y.after[1];
  const int64_t ya3 = y.before[2], yb3 = y.after[2], ya4 = y.before[3], yb4 = y.after[3];
  T twice[planes];
  for (int u = 0; u < planes; ++u) twice[u] = 2 * (p.taper_x[x + u] * p.taper_y[y0]);

#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) {
    T column[planes + 2 * stencil_radius];
#pragma GCC unroll 16
    for (int k = 0; k < planes + 2 * stencil_radius; ++k) column[k] = now[i + (k - stencil_radius) * plane];
#pragma GCC unroll 4
    for (int u = 0; u < planes; ++u) {
      const T* n = now + u * plane;
      const T here = column[u + stencil_radius];
      T along_z = multiply_add(z1, n[i - 1] + n[i + 1], centre * here);
      along_z = multiply_add(z2, n[i - 2] + n[i + 2], along_z);
      along_z = multiply_add(z3, n[i - 3] + n[i + 3], along_z);
      along_z = multiply_add(z4, n[i - 4] + n[i + 4], along_z);
      T along_x = x1 * (column[u + 3] + column[u + 5]);
      along_x = multiply_add(x2, column[u + 2] + column[u + 6], along_x);
      along_x = multiply_add(x3, column[u + 1] + column[u + 7], along_x);
      along_x = multiply_add(x4, column[u] + column[u + 8], along_x);
      T laplacian = along_z + along_x;
      if constexpr (with_y) {
        T along_y = y1 * (n[i + ya1] + n[i + yb1]);
        along_y = multiply_add(y2, n[i + ya2] + n[i + yb2], along_y);
        along_y = multiply_add(y3, n[i + ya3] + n[i + yb3], along_y);
        along_y = multiply_add(y4, n[i + ya4] + n[i + yb4], along_y);
        laplacian = laplacian + along_y;
      }
      T* q = next + u * plane;
      const T rest = multiply_add(multiply_add(twice[u], taper[i], T(-1)), here - q[i], here);
      q[i] = multiply_add(speed[i + u * plane], laplacian, rest);
    }
  }
}

template <class T, bool with_y>
void step_box(const wave_step<T>& p, int64_t x0, int64_t x1, int64_t y0, int64_t y1) {
  int64_t x = x0;
  for (; x + 2 <= x1; x += 2)
    for (int64_t y = y0; y < y1; ++y) step_rows<T, with_y, 2>(p, x, y, rows_about(p.layout, p.ends, y));
  for (; x < x1; ++x)
    for (int64_t y = y0; y < y1; ++y) step_rows<T, with_y, 1>(p, x, y, rows_about(p.layout, p.ends, y));
}

// Makes the field odd about z = 0 in one row.
template <class T>
void mirror_row(T* row) {
  row[0] = 0;
  for (int64_t k = 1; k <= stencil_radius; ++k) row[-k] = -row[k];
}

// The cells of one tile: planes x0 to x1, rows y0 to y1.
struct box {
  int64_t x0, x1, y0, y1;
  [[nodiscard]] bool has(const point& p) const { return p.x >= x0 && p.x < x1 && p.y >= y0 && p.y < y1; }
};

inline box tile_box(const slab& part, int64_t ny, const hpeTiles& tiles, uint64_t tile) {
  const int64_t x = part.x0 + int64_t(tile % tiles.grid[0]) * part.tile_x;
  const int64_t y = int64_t(tile / tiles.grid[0]) * part.tile_y;
  return {x, least(x + part.tile_x, part.x1), y, least(y + part.tile_y, ny)};
}

template <class T>
void step_tile(const wave_step<T>& p, const box& tile) {
  if (p.ends == y_ends::flat)
    step_box<T, false>(p, tile.x0, tile.x1, tile.y0, tile.y1);
  else
    step_box<T, true>(p, tile.x0, tile.x1, tile.y0, tile.y1);
  for (int64_t i = 0; i < p.injected_count; ++i) {
    const point& at = p.injected[i];
    if (!tile.has(at)) continue;
    const int64_t cell = p.layout.index(at.x, at.y, at.z);
    p.next[cell] = multiply_add(p.speed[cell], p.amplitude[i], p.next[cell]);
  }
  for (int64_t i = 0; i < p.recorded_count; ++i) {
    const point& at = p.recorded[i];
    if (tile.has(at)) p.record[i] = p.now[p.layout.index(at.x, at.y, at.z)];
  }
  if (!p.free_surface) return;
  for (int64_t x = tile.x0; x < tile.x1; ++x)
    for (int64_t y = tile.y0; y < tile.y1; ++y) mirror_row(p.next + p.layout.index(x, y, 0));
}

template <class T>
void run(const wave_step<T>& p, const hpeTiles& tiles) {
  for (uint64_t tile = tiles.begin; tile < tiles.end; ++tile) step_tile(p, tile_box(p.part, p.layout.ny, tiles, tile));
}

// Calls row(place of the packed row, place of the row in the field) for every row of the window in the tiles.
template <class Parameters, class Row>
inline void for_rows(const Parameters& p, const hpeTiles& tiles, Row row) {
  const window& w = p.cells;
  for (uint64_t tile = tiles.begin; tile < tiles.end; ++tile) {
    const int64_t from = p.part.x0 + int64_t(tile) * p.part.tile_x;
    const int64_t x0 = most(from, w.x);
    const int64_t x1 = least(least(from + p.part.tile_x, p.part.x1), w.x + w.nx);
    for (int64_t x = x0; x < x1; ++x)
      for (int64_t y = 0; y < w.ny; ++y) row(((x - w.x) * w.ny + y) * w.nz, p.layout.index(x, w.y + y, w.z));
  }
}

template <class T>
void run(const keep<T>& p, const hpeTiles& tiles) {
  for_rows(p, tiles, [&p](int64_t packed, int64_t cell) {
    T* __restrict kept = p.kept + packed;
    const T* field = p.field + cell;
    for (int64_t i = 0; i < p.cells.nz; ++i) kept[i] = field[i];
  });
}

template <class T>
void run(const correlate<T>& p, const hpeTiles& tiles) {
  for_rows(p, tiles, [&p](int64_t packed, int64_t cell) {
    T* __restrict image = p.image + packed;
    T* __restrict illumination = p.illumination + packed;
    const T* kept = p.kept + packed;
    const T* field = p.field + cell;
    for (int64_t i = 0; i < p.cells.nz; ++i) {
      image[i] = multiply_add(kept[i], field[i], image[i]);
      illumination[i] = multiply_add(kept[i], kept[i], illumination[i]);
    }
  });
}

}  // namespace
