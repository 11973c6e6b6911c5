#include "apps/predict/svg.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <vector>

namespace hpe::predict {

namespace {

// The picture, and the area of the lines in it, in pixels.
constexpr double width = 800, height = 440, left = 80, right = 590, top = 50, bottom = 380;
constexpr double line_height = 20;

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '&')
      result += "&amp;";
    else if (c == '<')
      result += "&lt;";
    else
      result += c;
  }
  return result;
}

std::string text_at(double x, double y, const char* anchor, const std::string& text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor, escaped(text));
}

std::string straight(double x1, double y1, double x2, double y2, const char* style) {
  return fmt::format("<path d=\"M{:.1f} {:.1f} L{:.1f} {:.1f}\" {}/>\n", x1, y1, x2, y2, style);
}

/// Converts values to positions in the picture: devices across, the logarithm of seconds upwards.
class plane {
 public:
  explicit plane(const std::vector<point>& points)
      : first_(points.front().devices), last_(first_), least_(points.front().time.seconds), most_(least_) {
    for (const point& p : points) {
      first_ = std::min(first_, p.devices);
      last_ = std::max(last_, p.devices);
      least_ = std::min(least_, p.time.seconds);
      most_ = std::max(most_, p.time.seconds);
    }
    constexpr double margin = 1.2;
    least_ /= margin;
    most_ *= margin;
  }

  [[nodiscard]] double x(int devices) const {
    if (first_ == last_) return (left + right) / 2;
    return left + (right - left) * (devices - first_) / (last_ - first_);
  }
  [[nodiscard]] double y(double seconds) const {
    return bottom - (bottom - top) * std::log(seconds / least_) / std::log(most_ / least_);
  }

  [[nodiscard]] std::string axes() const {
    const char* const grid = "stroke=\"#ddd\"";
    std::string svg;
    constexpr int most_ticks = 16;
    const int step = (last_ - first_) / most_ticks + 1;
    for (int n = first_; n <= last_; n += step) {
      svg += straight(x(n), top, x(n), bottom, grid);
      svg += text_at(x(n), bottom + line_height, "middle", std::to_string(n));
    }
    const auto decade = static_cast<int>(std::floor(std::log10(least_)));
    for (int d = decade; std::pow(10, d) <= most_; ++d)
      for (const int digit : {1, 2, 5})
        if (const double seconds = digit * std::pow(10, d); seconds >= least_ && seconds <= most_) {
          svg += straight(left, y(seconds), right, y(seconds), grid);
          svg += text_at(left - 8, y(seconds) + 4, "end", fmt::format("{:g} s", seconds));
        }
    svg += text_at((left + right) / 2, bottom + 2 * line_height, "middle", "devices");
    const double middle = (top + bottom) / 2;
    svg += fmt::format("<g transform=\"rotate(-90 {0:.1f} {1:.1f})\">{2}</g>\n", line_height, middle,
                       text_at(line_height, middle, "middle", "time, logarithmic scale"));
    return svg + straight(left, bottom, right, bottom, "stroke=\"#000\"") +
           straight(left, top, left, bottom, "stroke=\"#000\"");
  }

 private:
  int first_, last_;
  double least_, most_;
};

std::string line_of(const std::vector<point>& points, const plane& where, const char* colour) {
  std::string path, marks;
  for (const point& p : points) {
    const double x = where.x(p.devices), y = where.y(p.time.seconds);
    path += fmt::format("{}{:.1f} {:.1f} ", path.empty() ? "M" : "L", x, y);
    marks += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" stroke=\"{}\" fill=\"{}\"/>\n", x, y, colour,
                         p.extrapolated ? "#fff" : colour);
  }
  return fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>\n{}", path, colour, marks);
}

}  // namespace

std::string as_svg(const predictions& all) {
  static constexpr std::array colours{"#1f77b4", "#d62728", "#2ca02c", "#9467bd"};  // two topologies, two models
  std::map<std::string, std::vector<point>> lines;
  for (const point& p : all.points) lines[fmt::format("{}, {} model", name_of(p.where), name_of(p.which))].push_back(p);
  const plane where(all.points);
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"{0}\" height=\"{1}\" fill=\"#fff\"/>\n",
      width, height);
  const std::string changes = all.what_if.empty() ? "" : ", if " + all.what_if;
  svg += text_at(left, top - line_height, "start",
                 fmt::format("{} on {}{}: predicted seconds", all.specification, all.machine, changes));
  svg += where.axes();
  std::size_t n = 0;
  for (const auto& [name, points] : lines) {
    const char* const colour = colours.at(n % colours.size());
    const double y = top + line_height * static_cast<double>(n++);
    svg += line_of(points, where, colour);
    svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"{}\"/>\n", right + line_height, y, colour);
    svg += text_at(right + 2 * line_height, y + 4, "start", name);
  }
  const bool extrapolated =
      std::any_of(all.points.begin(), all.points.end(), [](const point& p) { return p.extrapolated; });
  if (extrapolated)
    svg += text_at(right + line_height, top + line_height * static_cast<double>(n + 1), "start",
                   "hollow: more devices than the machine has");
  return svg + "</svg>\n";
}

}  // namespace hpe::predict
