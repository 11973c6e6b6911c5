#pragma once

/// Pictures of values on a plane: title, axes with numbers, colour bar.

#include <cstdint>
#include <span>
#include <string>

#include "apps/pictures/picture.h"

namespace hpe::pictures {

/// The colour of a value from 0 to 1; other values get that of the nearer end.
using palette = colour (*)(double);

/// Dark blue over green to yellow; legible without colours too, for it grows ever lighter.
[[nodiscard]] colour blue_to_yellow(double value);
/// White to black.
[[nodiscard]] colour white_to_black(double value);

/// One axis of a chart: what it counts, with its unit, the value of the first sample, and from a sample to the next.
struct axis {
  std::string label;
  double first, step;
};

struct chart {
  std::string title;
  axis across, down;
  std::string unit;    ///< of the values, above the colour bar
  double least, most;  ///< values at the ends of the colour bar
  palette colours;
  bool square = true;  ///< one unit is as long across as down; else the chart is half as high as wide
};

/// Draws values with the samples of a column beside each other. `width` is that of the picture in pixels.
[[nodiscard]] picture draw(const chart& c, std::int64_t columns, std::int64_t rows, std::span<const float> values,
                           std::int64_t width);

/// The value that is larger than the given share of the values' sizes; for the ends of colour bars.
[[nodiscard]] double percentile_of_sizes(std::span<const float> values, double share);

}  // namespace hpe::pictures
