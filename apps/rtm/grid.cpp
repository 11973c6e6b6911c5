#include "apps/rtm/grid.h"

#include <algorithm>
#include <cmath>

namespace hpe::rtm {

namespace {

/// g of one axis: `before` and `after` cells of sponge around `cells` that do not damp, then ones to the end of the
/// last vector. The damping a grows with the cube of the depth into the sponge; its integral is the same for every
/// width, so wider sponges only damp more smoothly.
std::vector<double> taper(std::int64_t before, std::int64_t cells, std::int64_t after, double step_ratio) {
  constexpr double integral = 1.0;
  const auto damping = [step_ratio](std::int64_t depth, std::int64_t width) {
    const double u = static_cast<double>(depth) / static_cast<double>(width);
    return step_ratio * 4 * integral / static_cast<double>(width) * u * u * u;
  };
  std::vector<double> g(static_cast<std::size_t>(before + cells + after + kernels::row_multiple), 1.0);
  for (std::int64_t i = 0; i < before; ++i) g[static_cast<std::size_t>(i)] = 1 / (1 + damping(before - i, before));
  for (std::int64_t i = 0; i < after; ++i)
    g[static_cast<std::size_t>(before + cells + i)] = 1 / (1 + damping(i + 1, after));
  return g;
}

}  // namespace

grid make_grid(std::int64_t nx, std::int64_t ny, std::int64_t nz, double spacing, const boundaries& b,
               double step_ratio) {
  if (b.sponge < 0 || b.sponge > 10000)
    throw bad_input("a sponge of " + std::to_string(b.sponge) + " cells: 0 to 10000 are possible");
  using kernels::y_ends;
  const y_ends ends = ny == 1 ? y_ends::flat : ny <= b.thin ? y_ends::periodic : y_ends::closed;
  const std::int64_t side = b.sponge, top = b.free_surface ? 0 : side, y_side = ends == y_ends::closed ? side : 0;
  return {kernels::make_layout(nx + 2 * side, ny + 2 * y_side, nz + top + side, ends, b.free_surface),
          ends,
          {side, y_side, top, nx, ny, nz},
          b.free_surface,
          spacing,
          taper(side, nx, side, step_ratio),
          taper(y_side, ny, y_side, step_ratio),
          taper(top, nz, side, step_ratio)};
}

double stable_step(int dimensions, double spacing, double fastest) {
  double largest = -kernels::stencil_weights[0];
  for (std::int64_t k = 1; k <= kernels::stencil_radius; ++k) largest += 2 * std::abs(kernels::stencil_weights[k]);
  return 2 * spacing / (fastest * std::sqrt(dimensions * largest));
}

}  // namespace hpe::rtm
