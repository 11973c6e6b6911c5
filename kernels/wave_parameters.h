#pragma once

/// The kernels of acoustic waves, for reverse time migration (hpe rtm) and the wave stencil (hpe wave): what they
/// compute, and their parameters. Programs and kernel bodies include this header: a program sets the members of a
/// struct, a kernel body reads them.
///
/// A wave field is sampled on nx * ny * nz cells; z (depth) is fastest in memory and x slowest. The stencil reaches
/// `radius` cells, r, in each direction. Memory also contains cells beyond the grid, so that the stencil has no
/// branches; in the layout of make_layout, these cells are zero:
///
///   plane -r .. -1 | planes 0 .. nx-1 | plane nx .. nx+r-1      index(x, y, z) = origin + x * plane + y * row + z
///
/// A row consists of nz cells and a gap of at least r zeros, together a multiple of row_multiple elements. If the y
/// ends of a plane are closed, r rows of zeros follow the plane. The r elements before a row are the gap of the
/// previous row. kernels/fdtd.h has a layout in which planes and rows have rims of neighbours' cells on both sides.
///
/// Every point of a result is computed by the same operations in the same order, wherever tiles, slabs and devices end;
/// therefore, no bit of a result depends on how a grid is divided. Results may depend on the instruction set, which
/// rounds a multiply-add once or twice.

#include <stdint.h>

#include "hpe/hpe.h"
#include "kernels/columns.h"

namespace hpe::kernels {

/// The radius of the widest stencil (order 16 in space) and of the usual stencil (order 8).
inline constexpr int64_t most_radius = 8, usual_radius = 4;

/// Returns the weight of the cells at distance k in the second derivative of order 2 radius, for cells of side 1.
[[nodiscard]] constexpr double stencil_weight(int64_t radius, int64_t k) {
  if (k == 0) {
    double sum = 0;
    for (int64_t i = 1; i <= radius; ++i) sum -= 2 * stencil_weight(radius, i);
    return sum;
  }
  // 2 (-1)^(k+1) radius!^2 / (k^2 (radius - k)! (radius + k)!)
  double w = k % 2 == 1 ? 2.0 : -2.0;
  for (int64_t i = 1; i <= k; ++i) w *= double(radius - k + i) / double(radius + i);
  return w / double(k * k);
}

/// Returns the largest eigenvalue of the negative second derivative for cells of side 1, which determines the largest
/// stable time step. The eigenvalue belongs to the shortest wave, whose values alternate in sign as the weights do.
[[nodiscard]] constexpr double stencil_bound(int64_t radius) {
  double largest = -stencil_weight(radius, 0);
  for (int64_t k = 1; k <= radius; ++k)
    largest += 2 * (k % 2 == 1 ? stencil_weight(radius, k) : -stencil_weight(radius, k));
  return largest;
}

/// Kernel bodies process whole vectors of this many cells, so that the lengths of rows are multiples of it.
inline constexpr int64_t row_multiple = 16;

/// The memory layout of the cells of a wave field. Counts and distances are in elements.
struct field_layout {
  int64_t nx, ny, nz;
  int64_t radius;  ///< number of planes before the first and after the last plane
  int64_t lead;    ///< elements before a row's first cell; in make_layout, row_multiple with a free surface, else 0
  int64_t row;     ///< distance from a cell to its neighbour in y
  int64_t plane;   ///< distance from a cell to its neighbour in x
  int64_t origin;  ///< index of cell (0, 0, 0)

  [[nodiscard]] constexpr int64_t index(int64_t x, int64_t y, int64_t z) const {
    return origin + x * plane + y * row + z;
  }
  /// Returns the number of elements of the whole array.
  [[nodiscard]] constexpr int64_t size() const { return (nx + 2 * radius) * plane; }
};

/// The neighbours of cells beyond the first and the last row of a plane.
enum class y_ends : int32_t {
  flat,      ///< all values are constant along y, so that there is no derivative along y (two dimensions)
  periodic,  ///< the last row is the neighbour of the first
  closed     ///< rows of zeros
};

[[nodiscard]] constexpr int64_t whole_vectors(int64_t cells) {
  return (cells + row_multiple - 1) / row_multiple * row_multiple;
}

[[nodiscard]] constexpr field_layout make_layout(int64_t nx, int64_t ny, int64_t nz, y_ends ends, bool free_surface,
                                                 int64_t radius = usual_radius) {
  const int64_t lead = free_surface ? row_multiple : 0, row = whole_vectors(lead + nz + radius);
  const int64_t plane = (ny + (ends == y_ends::closed ? radius : 0)) * row;
  return {nx, ny, nz, radius, lead, row, plane, radius * plane + lead};
}

/// The rows and the cells of rows that a step computes in each plane.
struct section {
  int64_t y0, y1, z0, z1;
};

/// Returns all rows of a layout of make_layout, in whole vectors. Cells beyond the end of a row are zero and remain
/// zero, because their speed is zero.
[[nodiscard]] constexpr section whole_section(const field_layout& layout) {
  return {0, layout.ny, 0, whole_vectors(layout.nz)};
}

/// The position of a cell.
struct point {
  int32_t x, y, z;
};

/// A range of planes of a grid, and the tiles into which a launch cuts this range: tile_x planes by tile_y rows by
/// tile_z cells.
struct slab {
  int64_t x0, x1;
  int64_t tile_x, tile_y;
  int64_t tile_z = 0;  ///< 0: whole rows, as the bodies for soft devices require
  int64_t whole = 0;   ///< on GPUs: the number of columns of tiles that are not cut along x (kernels/columns.h)

  [[nodiscard]] constexpr uint32_t tiles_x() const { return uint32_t((x1 - x0 + tile_x - 1) / tile_x); }
  [[nodiscard]] constexpr uint32_t tiles_y(const section& s) const {
    return uint32_t((s.y1 - s.y0 + tile_y - 1) / tile_y);
  }
  [[nodiscard]] constexpr uint32_t tiles_z(const section& s) const {
    return uint32_t((s.z1 - s.z0 + tile_z - 1) / tile_z);
  }
};

/// Returns planes [x0, x1) for a soft device, in tiles whose working set (2 radius + 1 planes of tile_y rows and their
/// neighbours) stays in a second-level cache while the tile moves along x.
[[nodiscard]] constexpr slab make_slab(const field_layout& layout, const section& across, int64_t x0, int64_t x1,
                                       int64_t element_size) {
  constexpr int64_t cache = 1 << 20, tiles_wanted = 16;
  const int64_t row = (across.z1 - across.z0 + 2 * layout.radius) * element_size, all = across.y1 - across.y0;
  const int64_t rows = cache / ((2 * layout.radius + 1) * row) - 2 * layout.radius;
  const int64_t tile_y = rows < 8 ? 8 : rows;
  const int64_t tiles_y = (all + tile_y - 1) / tile_y;
  const int64_t tile_x = (x1 - x0) * tiles_y / tiles_wanted;
  return {x0, x1, tile_x < 8 ? 8 : (tile_x > 64 ? 64 : tile_x), (all + tiles_y - 1) / tiles_y};
}

/// Returns planes [x0, x1) for a GPU with the given number of multiprocessors.
[[nodiscard]] constexpr slab make_cuda_slab(const section& across, y_ends ends, int64_t x0, int64_t x1,
                                            int64_t multiprocessors) {
  if (ends != y_ends::closed) return {x0, x1, 8, 1, 128};
  slab part{x0, x1, x1 - x0, march_rows, march_cells};
  const int64_t columns = int64_t(part.tiles_y(across)) * part.tiles_z(across);
  const column_cut cut = cut_columns(columns, x1 - x0, multiprocessors);
  part.tile_x = cut.tile_x;
  part.whole = cut.whole;
  return part;
}

/// Returns the shape of a launch of wave_step.
[[nodiscard]] constexpr hpeShape step_shape(const slab& part, const section& across) {
  if (part.tile_z == 0) return {{part.tiles_x(), part.tiles_y(across), 1}, {1, 1, 1}};
  const int64_t columns = int64_t(part.tiles_y(across)) * part.tiles_z(across);
  return {{count_tiles({part.whole, part.tile_x}, columns, part.x1 - part.x0), 1, 1}, {uint32_t(march_threads), 1, 1}};
}

/// One time step of (1 + a) p+ - 2 p + (1 - a) p- = (c dt)^2 (laplacian p + q), with the damping a given through g = 1
/// / (1 + a) = taper_x[x] taper_y[y] taper_z[z]:
///
///   next = now + (2 g - 1) (now - next) + speed * laplacian(now),   speed = g (c dt)^2
///
/// With a potential v, the laplacian is replaced by laplacian(now) - v now. If the density rho varies, p / sqrt(rho)
/// obeys this equation with v = sqrt(rho) laplacian(1 / sqrt(rho)), and the step remains its own adjoint.
///
/// On entry, `next` contains the step before `now`; on return, it contains the step after `now`. The step then adds,
/// within the slab, speed * amplitude[i] to `next` at injected[i], and copies `now` at recorded[i] to record[i]. Points
/// may be listed more than once, and must be in the slab. With a free surface, which is at z = 0, the step makes `next`
/// odd about the surface.
///
/// The step computes the cells of `across` in the planes of `part`. It reads `now` in planes x0 - radius to x1 +
/// radius. It reads and writes `next` in planes x0 to x1. It reads the potential, if any, in the same cells as `speed`.
/// taper_z must have z1 elements, rounded up to row_multiple. On GPUs, taper_z must be aligned to 16 bytes, z0 must be
/// a multiple of 4, and the step overwrites up to three elements of `next` after z1: rim cells of boxes, which are
/// received again before they are read, or zeros, which remain zero.
template <class T>
struct wave_step {
  T* next;
  const T* now;
  const T* speed;
  const T* potential;  ///< null: constant density; otherwise only for orders 4, 8, 12 and 16
  const T* taper_x;
  const T* taper_y;
  const T* taper_z;
  field_layout layout;
  slab part;
  section across;
  T centre;                   ///< weight of the cell itself, over all axes
  T weights[3][most_radius];  ///< weights for x, y, z, at distances 1 to radius
  y_ends ends;
  int32_t free_surface;
  const point* injected;
  const T* amplitude;
  int64_t injected_count;
  const point* recorded;
  T* record;
  int64_t recorded_count;

  /// Sets the weights for the radius of the layout and the ends of y. per_area_x, per_area_y, per_area_z: 1 / side^2,
  /// where side is the side of a cell along the axis.
  constexpr void set_weights(double per_area_x, double per_area_y, double per_area_z) {
    const double per_area[3] = {per_area_x, ends == y_ends::flat ? 0 : per_area_y, per_area_z};
    centre = T(stencil_weight(layout.radius, 0) * (per_area[0] + per_area[1] + per_area[2]));
    for (int axis = 0; axis < 3; ++axis)
      for (int64_t k = 1; k <= layout.radius; ++k)
        weights[axis][k - 1] = T(stencil_weight(layout.radius, k) * per_area[axis]);
  }
};

/// Returns whether the steps of this order support a potential.
[[nodiscard]] constexpr bool takes_potential(int64_t order) { return order % 4 == 0; }

/// wave_step as a kernel for each order, which is twice the radius of the layout: wave_step_2_f32 to wave_step_16_f32
/// for every even order, and in double precision for orders 4, 8, 12 and 16.
template <class T, int64_t order>
struct wave_step_of : wave_step<T> {};
template <int64_t order>
using wave_step_f32 = wave_step_of<float, order>;
template <int64_t order>
using wave_step_f64 = wave_step_of<double, order>;

/// The cells of a grid that are stored: nx * ny * nz cells from (x, y, z) on, packed with z fastest. A launch processes
/// the cells whose x is in its slab.
struct window {
  int64_t x, y, z;
  int64_t nx, ny, nz;
};

/// Returns the shape of a launch of keep or correlate.
[[nodiscard]] constexpr hpeShape window_shape(const slab& part, const window& cells) {
  if (part.tile_z == 0) return {{part.tiles_x(), 1, 1}, {1, 1, 1}};
  constexpr int64_t rows_each = 32, most = 2048;
  const int64_t blocks = (cells.nx * cells.ny + rows_each - 1) / rows_each;
  return {{uint32_t(blocks < 1 ? 1 : blocks < most ? blocks : most), 1, 1}, {uint32_t(march_threads), 1, 1}};
}

/// Copies the window of `field` to `kept`.
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

/// A compressed row consists of blocks of block_cells cells. Each block has a range, and stores its cells as integers
/// of 4, 8 or 16 bits within this range. The ranges of all blocks come first, then the integers. If a byte contains two
/// cells, the first has the lower bits.
inline constexpr int64_t block_cells = 32;

/// The value of a cell is least + step * integer; its error is at most half a step. A step is (largest - smallest) /
/// (2^bits - 1), or (largest - smallest) / (2^bits - 2) in a block of both signs. In a block with both signs, `least`
/// is a multiple of `step`. Therefore, 0 is stored exactly, and cells that the wave has not reached add nothing to an
/// image.
template <class T>
struct block_range {
  T least, step;
};

/// Returns the size of a compressed row of nz cells in bytes.
template <class T>
[[nodiscard]] constexpr int64_t compressed_row(int64_t nz, int64_t bits) {
  const int64_t blocks = (nz + block_cells - 1) / block_cells;
  return blocks * (int64_t(sizeof(block_range<T>)) + block_cells * bits / 8);
}

/// Copies the window of `field` to `kept`, compressed row by row.
template <class T>
struct keep_compressed {
  uint8_t* kept;
  const T* field;
  field_layout layout;
  slab part;
  window cells;
  int64_t bits;
};

/// Does the same as correlate, with a compressed window `kept`.
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
