// The layout, in pixels: every chart is a box with its title above, ticks and labels at the left and below, and the
// boxes stand side by side over one legend.
#include "bench/plot.h"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "apps/command_line/report.h"

namespace hpe::bench {

namespace {

constexpr double box_width = 380, box_height = 270;
constexpr double left = 64, right = 18, top = 74, below = 58, legend_row = 22;

// The colours of M. Okabe and K. Ito, which people with any kind of colour vision can tell apart.
constexpr const char* colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"};
constexpr std::size_t colour_count = std::size(colours);

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '<')
      result += "&lt;";
    else if (c == '&')
      result += "&amp;";
    else
      result += c;
  }
  return result;
}

std::string in_bytes(double bytes) {
  const char* const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < std::size(units); ++unit) bytes /= 1024;
  return fmt::format("{:g} {}", bytes, units[unit]);
}

std::string in_decades(double value) {
  return value >= 0.001 && value < 1e6 ? fmt::format("{:g}", value) : fmt::format("{:.0e}", value);
}

/// What an axis shows: from where to where, and its ticks.
class range {
 public:
  range(const axis& a, const std::vector<line>& lines, bool of_x) : how_(a.how) {
    double least = std::numeric_limits<double>::infinity(), most = -least;
    for (const line& l : lines)
      for (const auto& [x, y] : l.points) {
        least = std::min(least, of_x ? x : y);
        most = std::max(most, of_x ? x : y);
      }
    if (least > most) least = most = 1;
    switch (how_) {
      case scale::linear: linear_ticks(most); break;
      case scale::decades: power_ticks(10, least, most); break;
      case scale::sizes: power_ticks(2, least, most); break;
    }
  }

  /// From 0 to 1.
  [[nodiscard]] double place(double value) const {
    if (how_ == scale::linear) return value / high_;
    return (std::log(value) - std::log(low_)) / (std::log(high_) - std::log(low_));
  }
  [[nodiscard]] const std::vector<double>& ticks() const { return ticks_; }
  [[nodiscard]] std::string words(double tick) const {
    switch (how_) {
      case scale::linear: return fmt::format("{:g}", tick);
      case scale::decades: return in_decades(tick);
      case scale::sizes: return in_bytes(tick);
    }
    return {};
  }

 private:
  void linear_ticks(double most) {
    constexpr double wanted = 5;
    const double rough = std::max(most, 1e-12) / wanted, power = std::pow(10, std::floor(std::log10(rough)));
    double step = power;
    for (const double factor : {1, 2, 5, 10})
      if (step < rough) step = factor * power;
    low_ = 0;
    high_ = std::ceil(std::max(most, 1e-12) / step - 1e-9) * step;
    for (int i = 0; i * step <= high_ * (1 + 1e-9); ++i) ticks_.push_back(i * step);
  }

  void power_ticks(double base, double least, double most) {
    const auto log = [base](double v) { return std::log(v) / std::log(base); };
    const double first = std::floor(log(least) + 1e-9);
    const double last = std::max(std::ceil(log(most) - 1e-9), first + 1);
    low_ = std::pow(base, first);
    high_ = std::pow(base, last);
    constexpr double most_ticks = 7;
    const double step = std::ceil((last - first + 1) / most_ticks);
    for (double e = first; e <= last; e += step) ticks_.push_back(std::pow(base, e));
  }

  scale how_;
  double low_ = 0, high_ = 1;
  std::vector<double> ticks_;
};

/// The mark of a point: a shape of its own for each line.
std::string mark(std::size_t kind, double x, double y, const char* colour) {
  constexpr double r = 3.4;
  switch (kind % 4) {
    case 0: return fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"{}\"/>\n", x, y, r, colour);
    case 1:
      return fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>\n", x - r + 0.4,
                         y - r + 0.4, 2 * r - 0.8, 2 * r - 0.8, colour);
    case 2:
      return fmt::format("<path d=\"M{:.1f} {:.1f}l{} {}h{}z\" fill=\"{}\"/>\n", x, y - r - 0.6, r + 0.4, 2 * r,
                         -2 * (r + 0.4), colour);
    default:
      return fmt::format("<path d=\"M{:.1f} {:.1f}l{} {}l{} {}l{} {}z\" fill=\"{}\"/>\n", x, y - r - 0.8, r + 0.8,
                         r + 0.8, -r - 0.8, r + 0.8, -r - 0.8, -r - 0.8, colour);
  }
}

std::string text(double x, double y, const char* style, const std::string& words) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"{}\">{}</text>\n", x, y, style, escaped(words));
}

std::string draw_chart(const chart& c, const std::vector<std::string>& names, double x0, double y0) {
  const range xs(c.x, c.lines, true), ys(c.y, c.lines, false);
  const auto at_x = [&](double v) { return x0 + xs.place(v) * box_width; };
  const auto at_y = [&](double v) { return y0 + box_height - ys.place(v) * box_height; };
  std::string s = text(x0 + box_width / 2, y0 - 12, "title", c.title);
  for (const double t : xs.ticks()) {
    s += fmt::format("<path class=\"grid\" d=\"M{:.1f} {:.1f}v{}\"/>\n", at_x(t), y0, box_height);
    s += text(at_x(t), y0 + box_height + 17, "tick middle", xs.words(t));
  }
  for (const double t : ys.ticks()) {
    s += fmt::format("<path class=\"grid\" d=\"M{:.1f} {:.1f}h{}\"/>\n", x0, at_y(t), box_width);
    s += text(x0 - 7, at_y(t) + 4, "tick end", ys.words(t));
  }
  s += fmt::format("<rect class=\"box\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n", x0, y0, box_width,
                   box_height);
  s += text(x0 + box_width / 2, y0 + box_height + 40, "label", c.x.label);
  s += fmt::format("<text class=\"label\" transform=\"translate({:.1f} {:.1f}) rotate(-90)\">{}</text>\n", x0 - 46,
                   y0 + box_height / 2, escaped(c.y.label));
  for (const line& l : c.lines) {
    const auto number = static_cast<std::size_t>(std::find(names.begin(), names.end(), l.name) - names.begin());
    const char* const colour = colours[number % colour_count];
    std::string path, marks;
    for (const auto& [x, y] : l.points) {
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? 'M' : 'L', at_x(x), at_y(y));
      marks += mark(number, at_x(x), at_y(y), colour);
    }
    if (!path.empty()) s += fmt::format("<path class=\"line\" stroke=\"{}\" d=\"{}\"/>\n{}", colour, path, marks);
  }
  return s;
}

}  // namespace

std::string draw(const std::string& title, const std::vector<chart>& charts) {
  std::vector<std::string> names;
  std::size_t longest = 0;
  for (const chart& c : charts)
    for (const line& l : c.lines)
      if (std::find(names.begin(), names.end(), l.name) == names.end()) {
        names.push_back(l.name);
        longest = std::max(longest, l.name.size());
      }
  const double width = std::max<double>(static_cast<double>(charts.size()), 1) * (left + box_width + right);
  const double entry = 46 + 6.6 * static_cast<double>(longest);
  const auto in_a_row = static_cast<std::size_t>(std::max(1.0, std::floor((width - left) / entry)));
  const std::size_t rows = (names.size() + in_a_row - 1) / in_a_row;
  const double legend = top + box_height + below;
  const double height = legend + legend_row * static_cast<double>(rows) + 8;

  std::string s = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\">\n"
      "<style>text{{font-family:'DejaVu Sans',Verdana,sans-serif;font-size:12px;fill:#222}}"
      ".head{{font-size:16px;font-weight:bold}}.title{{font-size:13px;text-anchor:middle}}"
      ".label,.middle{{text-anchor:middle}}.end{{text-anchor:end}}.tick{{font-size:11px;fill:#555}}"
      ".grid{{stroke:#e4e4e4;fill:none}}.box{{stroke:#888;fill:none}}"
      ".line{{fill:none;stroke-width:1.8;stroke-linejoin:round}}</style>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
      width, height);
  s += text(left, 28, "head", title);
  for (std::size_t i = 0; i < charts.size(); ++i)
    s += draw_chart(charts[i], names, left + static_cast<double>(i) * (left + box_width + right), top);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const double x = left + static_cast<double>(i % in_a_row) * entry;
    const std::size_t row = i / in_a_row;
    const double y = legend + legend_row * static_cast<double>(row) + 10;
    const char* const colour = colours[i % colour_count];
    s += fmt::format("<path class=\"line\" stroke=\"{}\" d=\"M{:.1f} {:.1f}h26\"/>\n", colour, x, y);
    s += mark(i, x + 13, y, colour) + text(x + 32, y + 4, "name", names[i]);
  }
  return s + "</svg>\n";
}

std::string as_json(const std::string& title, const std::vector<chart>& charts) {
  nlohmann::json object{{"program", ::program_invocation_short_name}, {"title", title},
                        {"commit", command_line::commit()},           {"machine", command_line::machine()},
                        {"time", command_line::time_now()},           {"charts", nlohmann::json::array()}};
  for (const chart& c : charts)
    for (const line& l : c.lines) {
      nlohmann::json row{{"chart", c.title},
                         {"line", l.name},
                         {"x_label", c.x.label},
                         {"y_label", c.y.label},
                         {"x", nlohmann::json::array()},
                         {"y", nlohmann::json::array()}};
      for (const auto& [x, y] : l.points) {
        row["x"].push_back(x);
        row["y"].push_back(y);
      }
      object["charts"].push_back(std::move(row));
    }
  return object.dump(1) + '\n';
}

void write_file(const std::string& path, const std::string& text) {
  std::FILE* const file = std::fopen(path.c_str(), "w");
  const bool written = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (file != nullptr && std::fclose(file) == 0 && written) return;
  fmt::print(stderr, "{}: cannot be written: {}\n", path, std::strerror(errno));  // NOLINT(concurrency-mt-unsafe)
  std::exit(1);                                                                   // NOLINT(concurrency-mt-unsafe)
}

}  // namespace hpe::bench
