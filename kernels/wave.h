#pragma once

/// The kernels of reverse time migration: their results and their parameters. Programs and kernel bodies include this
/// header: a program fills in the structs, a kernel body reads them.
///
/// A wave field is sampled on nx * ny * nz cells; z (depth) is fastest in memory and x slowest. Cells beyond the grid
/// exist in memory and hold zero, so that the stencil has no branches:
///
///   plane -4 .. -1 | planes 0 .. nx-1 | plane nx .. nx+3        index(x, y, z) = (x + 4) * plane + y * row + lead + z
///
/// A row is nz cells and a gap of at least four zeros, together a multiple of 64 bytes; a plane whose y ends are closed
/// is followed by four rows of zeros. The four values before a row are the gap of the previous row.
///
/// Every point of a result is computed by the same operations in the same order wherever tiles, slabs and devices end,
/// so no bit of the results depends on how a grid is divided. Results may depend on the instruction set, which rounds a
/// * b + c once or twice.

#include <stdint.h>

#include "hpe/hpe.h"
#include "kernels/columns.h"

namespace hpe::kernels {

/// Half the width of the stencil: 8th order in space.
inline constexpr int64_t stencil_radius = 4;

/// Weights of the second derivative at distances 0 to 4, for spacing 1. Their alternating sum, 2048/315, is the largest
/// eigenvalue of the negative second derivative; the limit of the time step follows from it.
inline constexpr double stencil_weights[stencil_radius + 1] = {-205.0 / 72, 8.0 / 5, -1.0 / 5, 8.0 / 315, -1.0 / 560};

/// Kernel bodies process whole vectors of this many cells; rows are padded to a multiple of it.
inline constexpr int64_t row_multiple = 16;

/// The memory layout of the cells of a wave field. Counts and distances are in elements.
struct field_layout {
  int64_t nx, ny, nz;
  int64_t lead;   ///< elements before the first cell of a row: 0, or row_multiple under a free surface
  int64_t row;    ///< from a cell to its neighbour in y
  int64_t plane;  ///< from a cell to its neighbour in x

  [[nodiscard]] constexpr int64_t index(int64_t x, int64_t y, int64_t z) const {
    return (x + stencil_radius) * plane + y * row + lead + z;
  }
  /// Elements of the whole array.
  [[nodiscard]] constexpr int64_t size() const { return (nx + 2 * stencil_radius) * plane; }
};

/// The neighbours beyond the first and the last row of a plane.
enum class y_ends : int32_t {
  flat,      ///< nothing varies along y: there is no derivative along y (two dimensions)
  periodic,  ///< the last row is the neighbour of the first
  closed     ///< rows of zeros
};

[[nodiscard]] constexpr field_layout make_layout(int64_t nx, int64_t ny, int64_t nz, y_ends ends, bool free_surface) {
  const int64_t lead = free_surface ? row_multiple : 0;
  const int64_t row = (lead + nz + stencil_radius + row_multiple - 1) / row_multiple * row_multiple;
  return {nx, ny, nz, lead, row, (ny + (ends == y_ends::closed ? stencil_radius : 0)) * row};
}

/// A cell.
struct point {
  int32_t x, y, z;
};

/// A part of a grid cut along x, and how a launch cuts it further: tiles of tile_x planes by tile_y rows by tile_z
/// cells.
struct slab {
  int64_t x0, x1;
  int64_t tile_x, tile_y;
  int64_t tile_z = 0;  ///< 0: whole rows, as the bodies for soft devices require
  int64_t whole = 0;   ///< on GPUs: the number of columns of tiles that are not cut along x (kernels/columns.h)

  [[nodiscard]] constexpr uint32_t tiles_x() const { return uint32_t((x1 - x0 + tile_x - 1) / tile_x); }
  [[nodiscard]] constexpr uint32_t tiles_y(int64_t ny) const { return uint32_t((ny + tile_y - 1) / tile_y); }
  [[nodiscard]] constexpr uint32_t tiles_z(int64_t nz) const { return uint32_t((nz + tile_z - 1) / tile_z); }
};

/// Planes x0 to x1 for a soft device, in tiles whose working set (nine planes of tile_y rows and their neighbours)
/// stays in a second-level cache while the tile moves along x.
[[nodiscard]] constexpr slab make_slab(const field_layout& layout, int64_t x0, int64_t x1, int64_t element_size) {
  constexpr int64_t cache = 1 << 20, tiles_wanted = 16;
  const int64_t rows = cache / ((2 * stencil_radius + 1) * layout.row * element_size) - 2 * stencil_radius;
  const int64_t tile_y = rows < 8 ? 8 : rows;
  const int64_t tiles_y = (layout.ny + tile_y - 1) / tile_y;
  const int64_t tile_x = (x1 - x0) * tiles_y / tiles_wanted;
  return {x0, x1, tile_x < 8 ? 8 : (tile_x > 64 ? 64 : tile_x), (layout.ny + tiles_y - 1) / tiles_y};
}

/// Planes x0 to x1 for a GPU with the given number of multiprocessors.
[[nodiscard]] constexpr slab make_cuda_slab(const field_layout& layout, y_ends ends, int64_t x0, int64_t x1,
                                            int64_t multiprocessors) {
  if (ends != y_ends::closed) return {x0, x1, 8, 1, 128};
  slab part{x0, x1, x1 - x0, march_rows, march_cells};
  const int64_t columns = int64_t(part.tiles_y(layout.ny)) * part.tiles_z(layout.nz);
  const column_cut cut = cut_columns(columns, x1 - x0, multiprocessors);
  part.tile_x = cut.tile_x;
  part.whole = cut.whole;
  return part;
}

/// The shape of a launch of wave_step.
[[nodiscard]] constexpr hpeShape step_shape(const slab& part, const field_layout& layout) {
  if (part.tile_z == 0) return {{part.tiles_x(), part.tiles_y(layout.ny), 1}, {1, 1, 1}};
  const int64_t columns = int64_t(part.tiles_y(layout.ny)) * part.tiles_z(layout.nz);
  return {{count_tiles({part.whole, part.tile_x}, columns, part.x1 - part.x0), 1, 1}, {uint32_t(march_threads), 1, 1}};
}

/// One time step of (1 + a) p+ - 2 p + (1 - a) p- = (c dt)^2 (laplacian p + q), with the damping a given through
/// g = 1 / (1 + a) = taper_x[x] taper_y[y] taper_z[z]:
///
///   next = now + (2 g - 1) (now - next) + speed * laplacian(now),   speed = g (c dt)^2
///
/// `next` holds the step before `now` on entry and the step after it on return. Then the step adds, inside the cells
/// of the slab, speed * amplitude[i] to next at injected[i], and copies now at recorded[i] to record[i]. Points may
/// be listed more than once and must lie in the slab. With a free surface, which is at z = 0, next is made odd about
/// it.
///
/// Reads: now in planes x0 - 4 to x1 + 4. Writes and reads: next in planes x0 to x1. Gaps, rims and speed outside
/// the cells are zero and stay zero. taper_z has nz elements rounded up to row_multiple.
template <class T>
struct wave_step {
  T* next;
  const T* now;
  const T* speed;
  const T* taper_x;
  const T* taper_y;
  const T* taper_z;
  field_layout layout;
  slab part;
  T centre;                      ///< weight of the point itself, over all axes
  T weights[3][stencil_radius];  ///< x, y, z; at distances 1 to 4
  y_ends ends;
  int32_t free_surface;
  const point* injected;
  const T* amplitude;
  int64_t injected_count;
  const point* recorded;
  T* record;
  int64_t recorded_count;
};

/// The cells of a grid that are kept: nx * ny * nz cells from (x, y, z) on, packed with z fastest. A launch processes
/// the cells whose x lies in its slab.
struct window {
  int64_t x, y, z;
  int64_t nx, ny, nz;
};

/// The shape of a launch of keep or correlate.
[[nodiscard]] constexpr hpeShape window_shape(const slab& part, const window& cells) {
  if (part.tile_z == 0) return {{part.tiles_x(), 1, 1}, {1, 1, 1}};
  constexpr int64_t rows_each = 32, most = 2048;
  const int64_t blocks = (cells.nx * cells.ny + rows_each - 1) / rows_each;
  return {{uint32_t(blocks < 1 ? 1 : blocks < most ? blocks : most), 1, 1}, {uint32_t(march_threads), 1, 1}};
}

/// kept = the window of field.
template <class T>
struct keep {
  T* kept;
  const T* field;
  field_layout layout;
  slab part;
  window cells;
};

/// The imaging condition: image += kept * field and illumination += kept^2, over the window.
template <class T>
struct correlate {
  T* image;
  T* illumination;
  const T* kept;
  const T* field;
  field_layout layout;
  slab part;
  window cells;
};

/// A compressed row: its cells in blocks of this many, each with a range, and the cells of a block as integers of 4, 8
/// or 16 bits within its range. First come the ranges of all blocks, then the integers; of two cells in a byte, the
/// first has the lower bits.
inline constexpr int64_t block_cells = 32;

/// A cell is least + step * integer; its error is at most half a step. A step is (largest - smallest) / (2^bits - 1),
/// or / (2^bits - 2) in a block of both signs, where least is a multiple of the step: 0 stays 0, so that cells which
/// the wave has not reached add nothing to an image.
template <class T>
struct block_range {
  T least, step;
};

/// Bytes of a compressed row of nz cells.
template <class T>
[[nodiscard]] constexpr int64_t compressed_row(int64_t nz, int64_t bits) {
  const int64_t blocks = (nz + block_cells - 1) / block_cells;
  return blocks * (int64_t(sizeof(block_range<T>)) + block_cells * bits / 8);
}

/// kept = the window of field, compressed row by row.
template <class T>
struct keep_compressed {
  uint8_t* kept;
  const T* field;
  field_layout layout;
  slab part;
  window cells;
  int64_t bits;
};

/// correlate with a compressed window.
template <class T>
struct correlate_compressed {
  T* image;
  T* illumination;
  const uint8_t* kept;
  const T* field;
  field_layout layout;
  slab part;
  window cells;
  int64_t bits;
};

}  // namespace hpe::kernels
