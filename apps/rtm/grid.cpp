#include "apps/rtm/grid.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace hpe::rtm {

namespace {

/// Returns the factors g of one axis: `before` and `after` cells of sponge around `cells` cells without damping, padded
/// with ones to a whole number of vectors, so that the factors of the next axis are aligned. The damping a grows with
/// the cube of the depth into the sponge. The integral of a over the sponge does not depend on the sponge's width, so a
/// wider sponge only damps more smoothly.
std::vector<double> taper(std::int64_t before, std::int64_t cells, std::int64_t after, double step_ratio) {
  constexpr double integral = 1.0;
  const auto damping = [step_ratio](std::int64_t depth, std::int64_t width) {
    const double u = static_cast<double>(depth) / static_cast<double>(width);
    return step_ratio * 4 * integral / static_cast<double>(width) * u * u * u;
  };
  std::vector<double> g(static_cast<std::size_t>(kernels::whole_vectors(before + cells + after)), 1.0);
  for (std::int64_t i = 0; i < before; ++i) g[static_cast<std::size_t>(i)] = 1 / (1 + damping(before - i, before));
  for (std::int64_t i = 0; i < after; ++i)
    g[static_cast<std::size_t>(before + cells + i)] = 1 / (1 + damping(i + 1, after));
  return g;
}

/// Appends the rates of the cells of matched layers of one axis. The damping d grows with the square of the depth u
/// into the layer. A wave with the fastest velocity c that crosses the layer and returns keeps a thousandth of its
/// amplitude. way is c times the time step, in cells. Velocities and dampings are per time step and cell.
void append_rates(std::vector<double>& rates, const kernels::layer_ends& ends, double way) {
  constexpr double kept = 1e-3, shift = 1.0 / 16;  // shift: alpha divided by the largest damping
  const auto first = rates.size(), width = static_cast<std::size_t>(ends.width());
  rates.resize(first + kernels::layer_rates * width);
  for (std::size_t n = 0; n < width; ++n) {
    const auto i = static_cast<std::int64_t>(n);
    const bool before = i < ends.before;
    const auto layer = static_cast<double>(before ? ends.before : ends.after);
    const double u = static_cast<double>(before ? ends.before - i : i - ends.before + 1) / layer;
    const double most = 1.5 * std::log(1 / kept) * way / layer, d = most * u * u;
    const double rise = (before ? -2 : 2) * most * u / layer, alpha = shift * most;
    const double decay = std::exp(-(d + alpha)), gain = (1 - decay) / (d + alpha);
    const double all[kernels::layer_rates] = {
        decay, gain, -2 * d * gain, -rise * gain, d * d * gain, 2 * d * rise * gain, -d * d * rise * gain};
    for (std::size_t k = 0; k < std::size(all); ++k) rates[first + k * width + n] = all[k];
  }
}

}  // namespace

kernels::y_ends ends_of(std::int64_t ny, const boundaries& b) {
  using kernels::y_ends;
  return ny == 1 ? y_ends::flat : ny <= b.thin ? y_ends::periodic : y_ends::closed;
}

grid make_grid(std::int64_t nx, std::int64_t ny, std::int64_t nz, const sides& spacing, const boundaries& b,
               double step_ratio, std::int64_t order) {
  if (order != 4 && order != 8 && order != 12 && order != 16)
    throw bad_input("order " + std::to_string(order) + " in space: 4, 8, 12 and 16 are possible");
  if (b.cells() > 10000 || b.cpml < 0)
    throw bad_input("absorbing layers of " + std::to_string(b.cpml < 0 ? b.cpml : b.cells()) +
                    " cells: 0 to 10000 are possible");
  if (b.sponge >= 0 && b.cpml > 0)
    throw bad_input("a sponge of " + std::to_string(b.sponge) + " cells and matched layers of " +
                    std::to_string(b.cpml) + " cells: only one of the two is possible");
  using kernels::y_ends;
  const y_ends ends = ends_of(ny, b);
  const std::int64_t side = b.cells(), top = b.free_surface ? 0 : side, y_side = ends == y_ends::closed ? side : 0;
  grid g{kernels::make_layout(nx + 2 * side, ny + 2 * y_side, nz + top + side, ends, b.free_surface, order / 2),
         ends,
         {side, y_side, top, nx, ny, nz},
         b.free_surface,
         spacing,
         taper(side, nx, side, step_ratio),
         taper(y_side, ny, y_side, step_ratio),
         taper(top, nz, side, step_ratio)};
  if (b.cpml == 0) return g;
  g.matched = {{{g.layout.nx, side, side}, {g.layout.ny, y_side, y_side}, {g.layout.nz, top, side}}};
  for (auto* axis : {&g.taper_x, &g.taper_y, &g.taper_z}) std::fill(axis->begin(), axis->end(), 1.0);
  const double way = step_ratio * stable_step(g.dimensions(), spacing, 1, order);
  append_rates(g.rates, g.matched[0], way / spacing.x);
  append_rates(g.rates, g.matched[1], way / spacing.y);
  append_rates(g.rates, g.matched[2], way / spacing.z);
  return g;
}

grid slab_of(const grid& whole, std::int64_t x0, std::int64_t x1) {
  if (x1 - x0 < whole.layout.radius)
    throw bad_input("a slab of " + std::to_string(x1 - x0) + " planes: a process needs at least " +
                    std::to_string(whole.layout.radius) + "; use fewer parts");
  grid g = whole;
  g.layout.nx = x1 - x0;
  g.first_plane = x0;
  const std::int64_t from = std::clamp(whole.model.x, x0, x1), to = std::clamp(whole.model.x + whole.model.nx, x0, x1);
  g.model.x = from - x0;
  g.model.nx = to - from;
  g.taper_x.assign(whole.taper_x.begin() + x0, whole.taper_x.begin() + x1);
  g.taper_x.resize(static_cast<std::size_t>(kernels::whole_vectors(x1 - x0)), 1.0);
  if (whole.rates.empty()) return g;
  const kernels::layer_ends& all = whole.matched[0];
  g.matched[0] = {x1 - x0, std::clamp(all.before - x0, std::int64_t{0}, x1 - x0),
                  std::clamp(x1 - (all.n - all.after), std::int64_t{0}, x1 - x0)};
  g.rates.clear();
  for (std::int64_t k = 0; k < kernels::layer_rates; ++k) {
    const auto row = whole.rates.begin() + k * all.width();
    g.rates.insert(g.rates.end(), row + all.below(x0), row + all.below(x1));
  }
  g.rates.insert(g.rates.end(), whole.rates.begin() + kernels::layer_rates * all.width(), whole.rates.end());
  return g;
}

density_potential::density_potential(const volume& density, kernels::y_ends ends, bool free_surface, std::int64_t order)
    : nx_(density.nx),
      ny_(density.ny),
      nz_(density.nz),
      spacing_(density.spacing),
      ends_(ends),
      free_surface_(free_surface),
      radius_(order / 2) {
  // Above a certain ratio of two densities, the scheme is unstable. This ratio is lowest in order 16: between 8 and 10.
  constexpr int most = 8;
  const auto [least, largest] = std::minmax_element(density.values.begin(), density.values.end());
  if (!(*least > 0) || !std::isfinite(*largest) || *largest > most * *least)
    throw bad_input(
        fmt::format("densities from {} to {}: they must be positive, and the largest at most {} times the smallest",
                    *least, *largest, most));
  for (const float value : density.values) inverse_roots_.push_back(1 / std::sqrt(static_cast<double>(value)));
}

double density_potential::inverse_root(std::int64_t x, std::int64_t y, std::int64_t z) const {
  if (ends_ == kernels::y_ends::periodic) y = (y % ny_ + ny_) % ny_;
  if (free_surface_) z = std::abs(z);  // the field is an odd function of the depth, and densities are an even function
  x = std::clamp<std::int64_t>(x, 0, nx_ - 1);
  y = std::clamp<std::int64_t>(y, 0, ny_ - 1);
  z = std::clamp<std::int64_t>(z, 0, nz_ - 1);
  return inverse_roots_[static_cast<std::size_t>((x * ny_ + y) * nz_ + z)];
}

double density_potential::at(std::int64_t x, std::int64_t y, std::int64_t z) const {
  const double here = inverse_root(x, y, z);
  const auto along = [&](std::int64_t dx, std::int64_t dy, std::int64_t dz, double side) {
    double sum = kernels::stencil_weight(radius_, 0) * here;
    for (std::int64_t k = 1; k <= radius_; ++k)
      sum += kernels::stencil_weight(radius_, k) *
             (inverse_root(x - k * dx, y - k * dy, z - k * dz) + inverse_root(x + k * dx, y + k * dy, z + k * dz));
    return sum / (side * side);
  };
  double sum = along(1, 0, 0, spacing_.x) + along(0, 0, 1, spacing_.z);
  if (ends_ != kernels::y_ends::flat) sum += along(0, 1, 0, spacing_.y);
  return sum / here;
}

double density_potential::largest() const {
  double most = 0;
  // Further outside, densities do not change.
  const std::int64_t beyond = radius_, beyond_y = ends_ == kernels::y_ends::closed ? radius_ : 0;
  for (std::int64_t x = -beyond; x < nx_ + beyond; ++x)
    for (std::int64_t y = -beyond_y; y < ny_ + beyond_y; ++y)
      for (std::int64_t z = free_surface_ ? 0 : -beyond; z < nz_ + beyond; ++z) most = std::max(most, at(x, y, z));
  return most;
}

double stable_step(int dimensions, const sides& spacing, double fastest, std::int64_t order, double potential) {
  double per_area = 1 / (spacing.x * spacing.x) + 1 / (spacing.z * spacing.z);
  if (dimensions == 3) per_area += 1 / (spacing.y * spacing.y);
  return 2 / (fastest * std::sqrt(per_area * kernels::stencil_bound(order / 2) + potential));
}

double stable_step(const volume& model, const volume* density, const boundaries& edges, double fastest,
                   std::int64_t order) {
  const kernels::y_ends ends = ends_of(model.ny, edges);
  double potential = 0;
  if (density != nullptr) {
    if (density->shape() != model.shape())
      throw bad_input("the density model has " + density->shape() + " cells, but the velocity model has " +
                      model.shape());
    potential = density_potential(*density, ends, edges.free_surface, order).largest();
  }
  return stable_step(ends == kernels::y_ends::flat ? 2 : 3, model.spacing, fastest, order, potential);
}

}  // namespace hpe::rtm
