#pragma once

/// Pictures of values on a plane: title, axes with numbers, colour bar.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "apps/pictures/picture.h"

namespace hpe::pictures {

/// The colour of a value from 0 to 1; other values have the colour of the nearer end.
using palette = colour (*)(double);

/// Dark blue over green to yellow; readable without colours too, because the brightness grows steadily.
[[nodiscard]] colour blue_to_yellow(double value);
/// White to black.
[[nodiscard]] colour white_to_black(double value);
/// Blue over white to red.
[[nodiscard]] colour blue_to_red(double value);

/// One axis of a chart: its quantity and unit, the value of the first sample, and the step from sample to sample.
struct axis {
  std::string label;
  double first, step;
};

struct chart {
  std::string title = {};
  axis across = {}, down = {};
  std::string unit = {};       ///< unit of the values, shown above the colour bar
  double least = 0, most = 1;  ///< values at the ends of the colour bar
  palette colours = blue_to_yellow;
  bool square = true;  ///< a unit is as long across as down; false: the chart is half as high as wide
  /// Returns the colour of a sample, by column and row, in place of its value's colour; nullopt: the value's colour.
  /// May be empty: all samples then have their values' colours.
  std::function<std::optional<colour>(std::int64_t, std::int64_t)> over = {};
};

/// Draws values; the samples of a column are adjacent in memory. `width` is the width of the picture in pixels.
[[nodiscard]] picture draw(const chart& c, std::int64_t columns, std::int64_t rows, std::span<const float> values,
                           std::int64_t width);

/// Places pictures one below the other.
[[nodiscard]] picture stacked(std::span<const picture> all);

/// Returns the value that a fraction `share` of the absolute values does not exceed; used for the ends of colour bars.
[[nodiscard]] double percentile_of_sizes(std::span<const float> values, double share);

}  // namespace hpe::pictures
