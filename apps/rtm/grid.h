#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "apps/rtm/model/volume.h"
#include "kernels/absorb.h"
#include "kernels/wave.h"

namespace hpe::rtm {

/// The order of the derivatives in space: 4, 8, 12 or 16.
inline constexpr std::int64_t usual_order = 8;

/// How a model becomes a grid to compute on.
struct boundaries {
  std::int64_t sponge = -1;  ///< cells of sponge on each side that absorbs; negative: 40 if there are no matched layers
  std::int64_t cpml = 0;     ///< cells of convolutional perfectly matched layer on each side, in place of a sponge
  bool free_surface = false;  ///< z = 0 reflects with reversed sign instead of absorbing
  std::int64_t thin = 32;     ///< models of at most this many planes are periodic along y; one plane is two-dimensional

  /// Cells of the absorbing layer on each side.
  [[nodiscard]] std::int64_t cells() const { return cpml > 0 ? cpml : sponge < 0 ? 40 : sponge; }
};

/// The cells of a model and of the absorbing layers around it: their layout in memory, and how strongly each cell
/// damps. Damping in sponges follows g = 1 / (1 + a) = x[i] y[j] z[k], see kernels/wave.h; matched layers have the
/// rates of kernels/absorb.h.
struct grid {
  kernels::field_layout layout;
  kernels::y_ends ends;
  kernels::window model;  ///< the model's cells inside; of a slab those on its planes
  bool free_surface;
  sides spacing;  ///< of a cell
  std::vector<double> taper_x, taper_y, taper_z;
  std::array<kernels::layer_ends, 3> matched = {};  ///< by axis; of no cells where there is a sponge
  std::vector<double> rates = {};                   ///< of all axes
  std::int64_t first_plane = 0;                     ///< of a slab, in the whole grid
  kernels::window whole = model;                    ///< the model's cells in the whole grid

  /// The number of axes with derivatives.
  [[nodiscard]] int dimensions() const { return ends == kernels::y_ends::flat ? 2 : 3; }
  /// The cell of the grid that holds a cell of the model. It may lie beyond a slab.
  [[nodiscard]] kernels::point cell(std::int64_t x, std::int64_t y, std::int64_t z) const {
    return {static_cast<std::int32_t>(x + whole.x - first_plane), static_cast<std::int32_t>(y + whole.y),
            static_cast<std::int32_t>(z + whole.z)};
  }
};

/// Throws bad_input for layers that are not possible. step_ratio is the time step divided by the longest stable one:
/// damping is per time, tapers are per step.
grid make_grid(std::int64_t nx, std::int64_t ny, std::int64_t nz, const sides& spacing, const boundaries& b,
               double step_ratio, std::int64_t order = usual_order);

/// Planes [x0, x1) of a grid, as the grid of a process that shares it with others. Throws bad_input for fewer planes
/// than the stencil reaches.
grid slab_of(const grid& whole, std::int64_t x0, std::int64_t x1);

/// The longest stable time step in seconds (Courant, Friedrichs, Lewy): 2 / (c sqrt(largest eigenvalue of the
/// negative Laplacian)) for the fastest velocity c in m/s.
double stable_step(int dimensions, const sides& spacing, double fastest, std::int64_t order = usual_order);

}  // namespace hpe::rtm
