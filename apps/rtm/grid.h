#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "apps/rtm/model/volume.h"
#include "kernels/absorb.h"
#include "kernels/wave_parameters.h"

namespace hpe::rtm {

/// The order of the derivatives in space: 4, 8, 12 or 16.
inline constexpr std::int64_t usual_order = 8;

/// The boundaries that are added to a model to make a grid.
struct boundaries {
  std::int64_t sponge = -1;  ///< cells of sponge on each absorbing side; negative: 40 if the grid has no matched layers
  std::int64_t cpml = 0;     ///< cells of perfectly matched layer (CPML) on each absorbing side, in place of a sponge
  bool free_surface = false;  ///< the surface z = 0 reflects waves with reversed sign; false: the surface absorbs waves
  std::int64_t thin = 32;     ///< models of up to this many planes are periodic along y; those of one plane are flat

  /// Cells of the absorbing layer on each absorbing side.
  [[nodiscard]] std::int64_t cells() const { return cpml > 0 ? cpml : sponge < 0 ? 40 : sponge; }
};

/// Returns the kind of neighbours that the first and the last row of a model with ny planes have.
[[nodiscard]] kernels::y_ends ends_of(std::int64_t ny, const boundaries& b);

/// The cells of a model and of the absorbing layers around it: their layout in memory, and the damping of each cell.
/// Damping in sponges follows g = 1 / (1 + a) = x[i] y[j] z[k], see kernels/wave_parameters.h; matched layers have the
/// rates of kernels/absorb.h.
struct grid {
  kernels::field_layout layout;
  kernels::y_ends ends;
  kernels::window model;  ///< the model's cells in this grid; in a slab, the model's cells on the slab's planes
  bool free_surface;
  sides spacing;  ///< sides of a cell
  std::vector<double> taper_x, taper_y, taper_z;
  std::array<kernels::layer_ends, 3> matched = {};  ///< layers of each axis; without cells if there is a sponge
  std::vector<double> rates = {};                   ///< rates of the matched layers of all axes
  std::int64_t first_plane = 0;                     ///< first plane of a slab, counted in the whole grid
  kernels::window whole = model;                    ///< the model's cells in the whole grid

  /// Returns the number of axes with derivatives.
  [[nodiscard]] int dimensions() const { return ends == kernels::y_ends::flat ? 2 : 3; }
  /// Returns the cell of the grid that holds a cell of the model. If this grid is a slab, the returned cell may be
  /// outside of the grid.
  [[nodiscard]] kernels::point cell(std::int64_t x, std::int64_t y, std::int64_t z) const {
    return {static_cast<std::int32_t>(x + whole.x - first_plane), static_cast<std::int32_t>(y + whole.y),
            static_cast<std::int32_t>(z + whole.z)};
  }
};

/// Makes the grid of a model of nx x ny x nz cells. Throws bad_input for an invalid order or invalid layers. step_ratio
/// is the time step divided by the longest stable time step. It converts the damping, which is per time, to tapers,
/// which are per step.
grid make_grid(std::int64_t nx, std::int64_t ny, std::int64_t nz, const sides& spacing, const boundaries& b,
               double step_ratio, std::int64_t order = usual_order);

/// Returns planes [x0, x1) of a grid, as the grid of a process that computes only these planes. Throws bad_input if the
/// slab has fewer planes than the stencil's radius.
grid slab_of(const grid& whole, std::int64_t x0, std::int64_t x1);

/// The potential in kernels/wave_parameters.h for densities on the cells of a model: sqrt(density) laplacian(1 /
/// sqrt(density)), with the weights of the wave step. With this potential, a constant pressure stays constant, and a
/// jump of density between two cells acts like the geometric mean of both densities at the face between the cells. The
/// outermost densities continue beyond the model.
class density_potential {
 public:
  /// Throws bad_input for densities that are not positive, and if the largest density is more than 8 times the
  /// smallest, because the scheme may then be unstable.
  density_potential(const volume& density, kernels::y_ends ends, bool free_surface, std::int64_t order);

  /// Returns the potential in cell (x, y, z), in 1 / m^2. The cell may be outside of the model.
  [[nodiscard]] double at(std::int64_t x, std::int64_t y, std::int64_t z) const;
  /// Returns the largest potential of all cells, at least 0.
  [[nodiscard]] double largest() const;

 private:
  /// Returns 1 / sqrt(density) of a cell.
  [[nodiscard]] double inverse_root(std::int64_t x, std::int64_t y, std::int64_t z) const;

  const std::int64_t nx_, ny_, nz_;
  const sides spacing_;
  std::vector<double> inverse_roots_;  ///< 1 / sqrt(density) of the model's cells
  const kernels::y_ends ends_;
  const bool free_surface_;
  const std::int64_t radius_;
};

/// Returns the longest stable time step in seconds (Courant, Friedrichs, Lewy): 2 / (c sqrt(e + v)) for the fastest
/// velocity c in m/s, the largest eigenvalue e of the negative Laplacian, and the largest potential v, both in 1 / m^2.
double stable_step(int dimensions, const sides& spacing, double fastest, std::int64_t order = usual_order,
                   double potential = 0);

/// Returns the longest stable time step for a model with these densities; null: constant density. Throws bad_input if
/// the cells of `density` differ from those of `model`.
double stable_step(const volume& model, const volume* density, const boundaries& edges, double fastest,
                   std::int64_t order);

}  // namespace hpe::rtm
