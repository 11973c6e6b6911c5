#pragma once

#include <cstdint>
#include <vector>

#include "apps/rtm/model/volume.h"
#include "kernels/wave.h"

namespace hpe::rtm {

/// How a model becomes a grid to compute on.
struct boundaries {
  std::int64_t sponge = 40;   ///< cells of absorbing layer on each side that absorbs
  bool free_surface = false;  ///< z = 0 reflects with reversed sign instead of absorbing
  std::int64_t thin = 32;     ///< models of at most this many planes are periodic along y; one plane is two-dimensional
};

/// The cells of a model and of the absorbing layers around it: their layout in memory, and how strongly each cell
/// damps. Damping follows g = 1 / (1 + a) = x[i] y[j] z[k], see kernels/wave.h.
struct grid {
  kernels::field_layout layout;
  kernels::y_ends ends;
  kernels::window model;  ///< the model's cells inside
  bool free_surface;
  double spacing;  ///< metres
  std::vector<double> taper_x, taper_y, taper_z;

  /// The number of axes with derivatives.
  [[nodiscard]] int dimensions() const { return ends == kernels::y_ends::flat ? 2 : 3; }
  /// The cell of the grid that holds a cell of the model.
  [[nodiscard]] kernels::point cell(std::int64_t x, std::int64_t y, std::int64_t z) const {
    return {static_cast<std::int32_t>(x + model.x), static_cast<std::int32_t>(y + model.y),
            static_cast<std::int32_t>(z + model.z)};
  }
};

/// step_ratio is the time step divided by the longest stable one: damping is per time, tapers are per step.
grid make_grid(std::int64_t nx, std::int64_t ny, std::int64_t nz, double spacing, const boundaries& b,
               double step_ratio);

/// The longest stable time step in seconds (Courant, Friedrichs, Lewy): 2 / (c sqrt(largest eigenvalue of the
/// negative Laplacian)) for the fastest velocity c in m/s.
double stable_step(int dimensions, double spacing, double fastest);

}  // namespace hpe::rtm
