#pragma once

/// Pictures of values on a plane: title, axes with numbers, colour bar.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "apps/pictures/colour_map.h"
#include "apps/pictures/picture.h"

namespace hpe::pictures {

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
  colour_map colours = blue_to_yellow;
  /// A unit is as long along the horizontal axis as along the vertical axis, if the chart is then between 0.05 and 3
  /// times as high as wide; otherwise the chart has the nearer of these two ratios. False: the chart is half as
  /// high as wide.
  bool square = true;
  /// Returns the colour of a sample, by column and row, in place of the colour of its value. If it returns nullopt, or
  /// if this function is empty, the sample has the colour of its value.
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
