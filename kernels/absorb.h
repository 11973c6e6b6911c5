#pragma once

/// The kernel of convolutional perfectly matched layers (CPML): what it computes, and its parameters. Layers are at the
/// ends of the axes of a grid (kernels/wave_parameters.h). In a layer, the coordinate of the axis is stretched by s = 1
/// + d / (alpha + i w), where d is the damping at the cell, so that the second derivative becomes
///
///   1/s (1/s p')' = p'' - 2 d r[p''] - d' r[p'] + d^2 r[r[p'']] + 2 d d' r[r[p']] - d^2 d' r[r[r[p']]]
///
/// with the low pass r = 1 / (i w + alpha + d). The terms after p'' require three nested low passes; the kernel keeps
/// the value of each low pass at each cell from step to step. Therefore, a cell needs only the values p of its
/// neighbours, and cells may be computed in any order. The operations at a point do not depend on where tiles, slabs
/// and devices end.
///
/// J. A. Roden and S. D. Gedney, "Convolution PML (CPML)", Microwave and Optical Technology Letters 27 (2000).

#include <stdint.h>

#include "hpe/hpe.h"
#include "kernels/wave_parameters.h"

namespace hpe::kernels {

/// The number of memories (kept values of low passes) of a cell in a layer, for each axis. The number of rates of a
/// layer's cell, for each axis: the decay of a memory in a step, its gain, and the gain times -2d, -d', d^2, 2 d d' and
/// -d^2 d'.
inline constexpr int64_t layer_memories = 3, layer_rates = 7;

/// The layers at the two ends of an axis of n cells, which are `before` and `after` cells wide.
struct layer_ends {
  int64_t n, before, after;

  [[nodiscard]] constexpr int64_t width() const { return before + after; }
  /// Returns the number of cell i among the cells of both layers; -1 if the cell is in no layer.
  [[nodiscard]] constexpr int64_t number(int64_t i) const {
    return i < before ? i : i >= n - after ? before + i - (n - after) : -1;
  }
  /// Returns the cell whose number is `number`: the inverse of number().
  [[nodiscard]] constexpr int64_t cell(int64_t number) const { return number < before ? number : n - width() + number; }
  /// Returns how many of the cells 0 to i - 1 are in layers.
  [[nodiscard]] constexpr int64_t below(int64_t i) const {
    return (i < before ? i : before) + (i > n - after ? i - (n - after) : 0);
  }
};

/// Subtracts speed times the terms of all layers from `next`, in the planes [x0, x1). The wave step, which must follow,
/// subtracts `next` and thereby adds these terms. The tapers of the wave step must be 1, as in a grid without damping.
///
/// The kernel reads `now` in the planes x0 - radius to x1 + radius, and `speed`. It reads and writes `next` and
/// `memory`.
template <class T>
struct absorb {
  T* next;
  const T* now;
  const T* speed;
  T* memory;       ///< the memories of the slab's cells in layers: memory_size() elements, zero before the first step
  const T* rates;  ///< for each of x, y and z, an array [rate][number of the cell]
  field_layout layout;
  int64_t x0, x1;
  layer_ends ends[3];
  T slopes[3][most_radius];          ///< weights of the first derivative at distances 1 to radius
  T curvatures[3][most_radius + 1];  ///< weights of the second derivative at distances 0 to radius

  /// Sets `slopes` and `curvatures` of an axis for the radius of the layout. per_area: 1 / side^2, where side is the
  /// side of a cell along the axis.
  constexpr void set_weights(int axis, double per_area) {
    curvatures[axis][0] = T(stencil_weight(layout.radius, 0) * per_area);
    for (int64_t k = 1; k <= layout.radius; ++k) {
      const double weight = stencil_weight(layout.radius, k) * per_area;
      curvatures[axis][k] = T(weight);
      slopes[axis][k - 1] = T(0.5 * double(k) * weight);
    }
  }

  /// Returns the number of planes of the slab that are in layers of x.
  [[nodiscard]] constexpr int64_t layer_planes() const { return ends[0].below(x1) - ends[0].below(x0); }
  /// Returns the first plane of the slab that is in no layer of x; the slab must have such a plane.
  [[nodiscard]] constexpr int64_t first_other_plane() const { return x0 > ends[0].before ? x0 : ends[0].before; }
  /// Returns the number of cells of the slab that are in layers of an axis.
  [[nodiscard]] constexpr int64_t cells(int axis) const {
    if (axis == 0) return layer_planes() * layout.ny * layout.nz;
    if (axis == 1) return (x1 - x0) * ends[1].width() * layout.nz;
    return (x1 - x0) * layout.ny * ends[2].width();
  }
  [[nodiscard]] constexpr int64_t memory_size() const { return layer_memories * (cells(0) + cells(1) + cells(2)); }
  /// Returns the index of a cell's first memory for an axis. The cell must be in a layer of this axis. The cell's next
  /// memory has an index that is larger by cells(axis).
  [[nodiscard]] constexpr int64_t place(int axis, int64_t x, int64_t y, int64_t z) const {
    if (axis == 0) return ((ends[0].number(x) - ends[0].below(x0)) * layout.ny + y) * layout.nz + z;
    if (axis == 1) return layer_memories * cells(0) + ((x - x0) * ends[1].width() + ends[1].number(y)) * layout.nz + z;
    return layer_memories * (cells(0) + cells(1)) + ((x - x0) * layout.ny + y) * ends[2].width() + ends[2].number(z);
  }
  /// Returns the address of a cell's first rate for an axis. The cell's next rate is ends[axis].width() elements
  /// further on.
  [[nodiscard]] constexpr const T* rates_of(int axis, int64_t number) const {
    const int64_t before = axis == 0 ? 0 : ends[0].width() + (axis == 1 ? 0 : ends[1].width());
    return rates + layer_rates * before + number;
  }
  [[nodiscard]] constexpr int64_t stride(int axis) const {
    return axis == 0 ? layout.plane : axis == 1 ? layout.row : 1;
  }
};

/// On GPUs, a block of threads processes absorb_block_rows rows, one with each warp, or absorb_block_cells cells at the
/// ends of other rows.
inline constexpr int64_t absorb_block_rows = march_threads / 32, absorb_block_cells = 4096;
struct absorb_blocks {
  int64_t rows;  ///< the number of rows that are in a layer of x or y
  int64_t ends;  ///< the number of cells of other rows that are in layers of z

  template <class T>
  constexpr explicit absorb_blocks(const absorb<T>& p) : rows(0), ends(0) {
    const int64_t others = p.x1 - p.x0 - p.layer_planes(), wide_y = p.ends[1].width();
    rows = p.layer_planes() * p.layout.ny + others * wide_y;
    ends = others * (p.layout.ny - wide_y) * p.ends[2].width();
  }
  [[nodiscard]] constexpr int64_t of_rows() const { return (rows + absorb_block_rows - 1) / absorb_block_rows; }
  [[nodiscard]] constexpr int64_t of_ends() const { return (ends + absorb_block_cells - 1) / absorb_block_cells; }
};

/// Returns the shape of a launch of kernel absorb. On soft devices, a tile is a plane. GPUs have kernels for orders 4,
/// 8, 12 and 16.
template <class T>
[[nodiscard]] constexpr hpeShape absorb_shape(const absorb<T>& p, bool on_gpu) {
  const int64_t planes = p.x1 - p.x0;
  if (!on_gpu) return {{uint32_t(planes), 1, 1}, {1, 1, 1}};
  const absorb_blocks blocks(p);
  const int64_t all = blocks.of_rows() + blocks.of_ends();
  return {{uint32_t(all), 1, 1}, {uint32_t(march_threads), 1, 1}};
}

}  // namespace hpe::kernels
