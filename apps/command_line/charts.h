#pragma once

/// Line charts. Programs write the numbers of the charts as JSON, and `scripts/measurements draw` draws the charts. A
/// picture is a row of charts with one legend; lines with the same name have the same colour in all of them.

#include <string>
#include <utility>
#include <vector>

namespace hpe::command_line {

/// The division and the labels of an axis.
enum class scale {
  linear,   ///< linear from 0, with ticks at round numbers
  decades,  ///< logarithmic, with a tick for each power of ten
  sizes,    ///< logarithmic, with ticks at powers of two: 4 KiB, 64 KiB, ...
};

struct axis {
  std::string label;
  scale how = scale::linear;
};

struct line {
  std::string name;
  std::vector<std::pair<double, double>> points;  ///< in ascending order of x; positive on logarithmic axes
};

struct chart {
  std::string title;
  axis x, y;
  std::vector<line> lines;
};

struct picture {
  std::string title;
  std::vector<chart> charts;
};

/// Returns the charts as JSON: the points of each line, and the program, machine, commit and time
/// (docs/schemas/charts.json).
[[nodiscard]] std::string as_json(const std::string& title, const std::vector<picture>& pictures);

}  // namespace hpe::command_line
