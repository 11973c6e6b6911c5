#pragma once

/// Line charts as SVG, for benchmarks: a figure is a row of charts that share their lines' names, colours and legend.

#include <string>
#include <utility>
#include <vector>

namespace hpe::bench {

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

/// The picture as text. Lines of one name look alike in all charts. Charts without points are drawn empty.
[[nodiscard]] std::string draw(const std::string& title, const std::vector<chart>& charts);

/// The numbers of the charts, with program, machine, commit and time (docs/schemas/charts.json).
[[nodiscard]] std::string as_json(const std::string& title, const std::vector<chart>& charts);

/// Writes text to a file; ends the program with a message if that fails.
void write_file(const std::string& path, const std::string& text);

}  // namespace hpe::bench
