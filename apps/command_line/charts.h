#pragma once

/// Line charts that programs write as numbers, and `scripts/measurements draw` draws. A picture is a row of charts
/// that share the names and colours of their lines, and a legend.

#include <string>
#include <utility>
#include <vector>

namespace hpe::command_line {

/// How an axis is divided and labelled.
enum class scale {
  linear,   ///< from 0, in round steps
  decades,  ///< logarithmic, a tick for each power of ten
  sizes,    ///< logarithmic, powers of two as bytes: 4 KiB, 64 KiB, ...
};

struct axis {
  std::string label;
  scale how = scale::linear;
};

struct line {
  std::string name;
  std::vector<std::pair<double, double>> points;  ///< x ascending; on logarithmic axes positive
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

/// The numbers of the charts as JSON, an entry for each line, with program, machine, commit and time
/// (docs/schemas/charts.json).
[[nodiscard]] std::string as_json(const std::string& title, const std::vector<picture>& pictures);

}  // namespace hpe::command_line
