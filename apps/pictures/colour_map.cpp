#include "apps/pictures/colour_map.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace hpe::pictures {

colour blue_to_yellow(double value) {
  static constexpr colour stops[] = {{40, 20, 90}, {45, 85, 150}, {30, 145, 140}, {100, 200, 90}, {250, 230, 60}};
  const double place = std::clamp(value, 0.0, 1.0) * 4;
  const auto i = std::min<std::size_t>(static_cast<std::size_t>(place), 3);
  const double part = place - static_cast<double>(i);
  colour c;
  for (std::size_t k = 0; k < 3; ++k) c[k] = stops[i][k] + part * (stops[i + 1][k] - stops[i][k]);
  return c;
}

colour white_to_black(double value) {
  const double shade = 255 * (1 - std::clamp(value, 0.0, 1.0));
  return {shade, shade, shade};
}

colour blue_to_red(double value) {
  const double place = 2 * std::clamp(value, 0.0, 1.0) - 1, rest = 255 * (1 - std::abs(place));
  return place > 0 ? colour{255, rest, rest} : colour{rest, rest, 255};
}

}  // namespace hpe::pictures
