#include "apps/pictures/chart.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace hpe::pictures {

namespace {

// The margins, positions and sizes in a chart, in pixels.
constexpr std::int64_t left = 88, above = 72, right = 112, below = 12;
constexpr std::int64_t title_y = 6, label_y = 28, bar_gap = 16, bar_width = 14;

/// Interpolates linearly between the samples.
double between(std::span<const float> values, std::int64_t columns, std::int64_t rows, double x, double z) {
  const auto at = [&](std::int64_t i, std::int64_t k) {
    return static_cast<double>(values[static_cast<std::size_t>(std::clamp<std::int64_t>(i, 0, columns - 1) * rows +
                                                               std::clamp<std::int64_t>(k, 0, rows - 1))]);
  };
  const auto i = static_cast<std::int64_t>(std::floor(x)), k = static_cast<std::int64_t>(std::floor(z));
  const double u = x - static_cast<double>(i), w = z - static_cast<double>(k);
  return (1 - u) * ((1 - w) * at(i, k) + w * at(i, k + 1)) + u * ((1 - w) * at(i + 1, k) + w * at(i + 1, k + 1));
}

void draw_colour_bar(picture& p, const area& where, const chart& c) {
  const std::int64_t x = where.left + where.across + bar_gap;
  for (std::int64_t j = 0; j < where.down; ++j)
    for (std::int64_t i = 0; i < bar_width; ++i)
      p.put(x + i, where.top + j, c.colours(1 - (static_cast<double>(j) + 0.5) / static_cast<double>(where.down)));
  p.write(x, label_y, c.unit);
  const double range = c.most - c.least, step = round_step(30 * range / static_cast<double>(where.down));
  for (double n = std::ceil(c.least / step - 1e-9); n * step <= c.most + 1e-9 * range; ++n) {
    const double value = n * step + 0.0;
    const auto y = where.top + std::lround((c.most - value) / range * static_cast<double>(where.down));
    for (std::int64_t i = 0; i < 3; ++i) p.put(x + bar_width + i, y, {0, 0, 0});
    p.write(x + bar_width + 6, y - character_height / 2, fmt::format("{:.4g}", value));
  }
}

}  // namespace

picture stacked(std::span<const picture> all) {
  std::int64_t width = 0, height = 0;
  for (const picture& p : all) {
    width = std::max(width, p.width());
    height += p.height();
  }
  picture whole(width, height);
  std::int64_t top = 0;
  for (const picture& p : all) {
    whole.put(0, top, p);
    top += p.height();
  }
  return whole;
}

picture draw(const chart& c, std::int64_t columns, std::int64_t rows, std::span<const float> values,
             std::int64_t width) {
  const double wide = static_cast<double>(columns) * c.across.step, high = static_cast<double>(rows) * c.down.step;
  const std::int64_t across = std::max<std::int64_t>(100, width - left - right);
  const double down_by_across = c.square ? std::clamp(high / wide, 0.05, 3.0) : 0.5;
  const area where{left, above, across,
                   std::max<std::int64_t>(40, std::llround(static_cast<double>(across) * down_by_across))};
  picture p(left + where.across + right, above + where.down + below);
  const double range = c.most > c.least ? c.most - c.least : 1;
  const double x_step = static_cast<double>(columns) / static_cast<double>(where.across),
               z_step = static_cast<double>(rows) / static_cast<double>(where.down);
  constexpr int parts = 3;  // each pixel is the mean of parts x parts points
  for (std::int64_t j = 0; j < where.down; ++j)
    for (std::int64_t i = 0; i < where.across; ++i) {
      double sum = 0;
      for (int k = 0; k < parts; ++k)
        for (int l = 0; l < parts; ++l)
          sum += between(values, columns, rows, (static_cast<double>(i) + (k + 0.5) / parts) * x_step - 0.5,
                         (static_cast<double>(j) + (l + 0.5) / parts) * z_step - 0.5);
      const auto sample = [](std::int64_t pixel, double step) {
        return static_cast<std::int64_t>((static_cast<double>(pixel) + 0.5) * step);
      };
      const auto own = c.over ? c.over(sample(i, x_step), sample(j, z_step)) : std::nullopt;
      p.put(where.left + i, where.top + j, own ? *own : c.colours((sum / (parts * parts) - c.least) / range));
    }
  draw_axes(p, where, {wide / static_cast<double>(where.across), c.across.first - 0.5 * c.across.step},
            {high / static_cast<double>(where.down), c.down.first - 0.5 * c.down.step});
  p.write(left, title_y, c.title);
  p.write(left + (where.across - width_of(c.across.label)) / 2, label_y, c.across.label);
  p.write(2, label_y, c.down.label);
  draw_colour_bar(p, where, c);
  return p;
}

double percentile_of_sizes(std::span<const float> values, double share) {
  std::vector<double> sizes(values.size());
  std::transform(values.begin(), values.end(), sizes.begin(), [](float v) { return std::abs(static_cast<double>(v)); });
  if (sizes.empty()) return 0;
  const auto place = sizes.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(sizes.size() - 1));
  std::nth_element(sizes.begin(), place, sizes.end());
  return *place;
}

}  // namespace hpe::pictures
