#pragma once

/// The bodies for soft devices of the kernels of kernels/wave_parameters.h.

#include "kernels/host/arithmetic.h"
#include "kernels/wave_parameters.h"

namespace {

using namespace hpe::kernels;

inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
inline int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

// The distances, in elements, from a row to its neighbouring rows in y.
struct neighbours {
  int64_t before[most_radius];
  int64_t after[most_radius];
};

inline neighbours rows_about(const field_layout& layout, y_ends ends, int64_t y) {
  neighbours n{};
  for (int64_t k = 1; k <= layout.radius; ++k) {
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

// Computes one row of several planes together. A value that is loaded as a neighbour in x for one plane is then also
// used for the other planes.
template <class T, int radius, bool with_y, bool with_potential, int planes>
void step_rows(const wave_step<T>& p, int64_t x, int64_t y0, const neighbours& rows) {
  const int64_t first = p.layout.index(x, y0, p.across.z0), count = p.across.z1 - p.across.z0;
  const int64_t plane = p.layout.plane;
  T* next = p.next + first;
  const T* now = p.now + first;
  const T* speed = p.speed + first;
  const T* potential = with_potential ? p.potential + first : nullptr;
  const T* taper = p.taper_z + p.across.z0;
  const T centre = p.centre;
  const neighbours y = rows;
  T w[3][radius];
  for (int axis = 0; axis < 3; ++axis)
    for (int k = 0; k < radius; ++k) w[axis][k] = p.weights[axis][k];
  T twice[planes];
  for (int u = 0; u < planes; ++u) twice[u] = 2 * (p.taper_x[x + u] * p.taper_y[y0]);

#pragma GCC ivdep
  for (int64_t i = 0; i < count; ++i) {
    T column[planes + 2 * radius];
#pragma GCC unroll 32
    for (int k = 0; k < planes + 2 * radius; ++k) column[k] = now[i + (k - radius) * plane];
#pragma GCC unroll 4
    for (int u = 0; u < planes; ++u) {
      const T* n = now + u * plane;
      const T here = column[u + radius];
      T along_z = multiply_add(w[2][0], n[i - 1] + n[i + 1], centre * here);
      T along_x = w[0][0] * (column[u + radius - 1] + column[u + radius + 1]);
#pragma GCC unroll 8
      for (int k = 2; k <= radius; ++k) {
        along_z = multiply_add(w[2][k - 1], n[i - k] + n[i + k], along_z);
        along_x = multiply_add(w[0][k - 1], column[u + radius - k] + column[u + radius + k], along_x);
      }
      T laplacian = along_z + along_x;
      if constexpr (with_y) {
        T along_y = w[1][0] * (n[i + y.before[0]] + n[i + y.after[0]]);
#pragma GCC unroll 8
        for (int k = 2; k <= radius; ++k)
          along_y = multiply_add(w[1][k - 1], n[i + y.before[k - 1]] + n[i + y.after[k - 1]], along_y);
        laplacian = laplacian + along_y;
      }
      if constexpr (with_potential) laplacian = multiply_add(-potential[i + u * plane], here, laplacian);
      T* q = next + u * plane;
      const T rest = multiply_add(multiply_add(twice[u], taper[i], T(-1)), here - q[i], here);
      q[i] = multiply_add(speed[i + u * plane], laplacian, rest);
    }
  }
}

// The cells of a tile: planes [x0, x1) and rows [y0, y1).
struct box {
  int64_t x0, x1, y0, y1;
  [[nodiscard]] bool has(const point& p) const { return p.x >= x0 && p.x < x1 && p.y >= y0 && p.y < y1; }
};

template <class T, int radius, bool with_y, bool with_potential>
void step_box(const wave_step<T>& p, const box& b) {
  int64_t x = b.x0;
  for (; x + 2 <= b.x1; x += 2)
    for (int64_t y = b.y0; y < b.y1; ++y)
      step_rows<T, radius, with_y, with_potential, 2>(p, x, y, rows_about(p.layout, p.ends, y));
  for (; x < b.x1; ++x)
    for (int64_t y = b.y0; y < b.y1; ++y)
      step_rows<T, radius, with_y, with_potential, 1>(p, x, y, rows_about(p.layout, p.ends, y));
}

template <class T, int radius, bool with_potential>
void step_tile(const wave_step<T>& p, const box& b) {
  if (p.ends == y_ends::flat)
    step_box<T, radius, false, with_potential>(p, b);
  else
    step_box<T, radius, true, with_potential>(p, b);
}

// Sets the cells at and above z = 0 in one row, so that the field is odd about z = 0.
template <class T>
void mirror_row(T* row, int64_t radius) {
  row[0] = 0;
  for (int64_t k = 1; k <= radius; ++k) row[-k] = -row[k];
}

inline box tile_box(const slab& part, const section& across, const hpeTiles& tiles, uint64_t tile) {
  const int64_t x = part.x0 + int64_t(tile % tiles.grid[0]) * part.tile_x;
  const int64_t y = across.y0 + int64_t(tile / tiles.grid[0]) * part.tile_y;
  return {x, least(x + part.tile_x, part.x1), y, least(y + part.tile_y, across.y1)};
}

// Adds the sources in a tile to the field, records the receivers in the tile, and mirrors the field at a free surface.
template <class T>
void finish_tile(const wave_step<T>& p, const box& tile) {
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
    for (int64_t y = tile.y0; y < tile.y1; ++y) mirror_row(p.next + p.layout.index(x, y, 0), p.layout.radius);
}

template <class T, int64_t order>
void run(const wave_step_of<T, order>& p, const hpeTiles& tiles) {
  for (uint64_t n = tiles.begin; n < tiles.end; ++n) {
    const box tile = tile_box(p.part, p.across, tiles, n);
    if (takes_potential(order) && p.potential != nullptr)
      step_tile<T, order / 2, takes_potential(order)>(p, tile);
    else
      step_tile<T, order / 2, false>(p, tile);
    finish_tile(p, tile);
  }
}

// Calls row(packed index, field index), the indices of the first cell of a row, for every row of the window that is in
// the given tiles.
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
