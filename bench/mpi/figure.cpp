#include "bench/mpi/figure.h"

#include <fmt/core.h>

#include <algorithm>

namespace hpe::bench {

namespace {

constexpr std::size_t short_message = 4096;

std::string name_of(std::size_t bytes) {
  if (bytes < (std::size_t{1} << 10)) return fmt::format("{} B", bytes);
  if (bytes < (std::size_t{1} << 20)) return fmt::format("{} KiB", bytes >> 10);
  return fmt::format("{} MiB", bytes >> 20);
}

std::vector<std::pair<double, double>>& points_of(std::vector<line>& lines, const char* name) {
  const auto found = std::find_if(lines.begin(), lines.end(), [&](const line& l) { return l.name == name; });
  return found != lines.end() ? found->points : lines.emplace_back(line{name, {}}).points;
}

}  // namespace

void figure::add(std::size_t bytes, const char* scheme, const timing& one_message) {
  const auto x = static_cast<double>(bytes);
  const auto rate = [&](double seconds) { return x / seconds / 1e9; };
  points_of(latency_, scheme).emplace_back(x, one_message.median * 1e6);
  points_of(bandwidth_, scheme).emplace_back(x, rate(one_message.median));
  const std::string what = fmt::format("{} {}", name_of(bytes), scheme);
  if (bytes <= short_message)
    results_.push_back({what, one_message.median * 1e6, "us", "", true,
                        fmt::format("{:.4g} to {:.4g}", one_message.fastest * 1e6, one_message.slowest * 1e6)});
  else
    results_.push_back({what, rate(one_message.median), "GB/s", "", true,
                        fmt::format("{:.4g} to {:.4g}", rate(one_message.slowest), rate(one_message.fastest))});
}

void figure::compare(const std::string& what, double ratio, double bar) {
  results_.push_back({"  " + what, ratio, "x", bar > 0 ? fmt::format(">= {:.2f}", bar) : "", ratio >= bar});
}

int figure::finish(const std::string& title, const arguments& given, const std::string& charts_file) const {
  const int status = report(title, results_, given);
  if (charts_file.empty()) return status;
  std::vector<chart> charts{{"Latency", {}, {"microseconds", scale::decades}, latency_},
                            {"Bandwidth", {}, {"GB/s", scale::decades}, bandwidth_}};
  for (chart& c : charts) c.x = {"bytes of a message", scale::sizes};
  command_line::write_text(as_json(title, {{"messages", charts}}), charts_file);
  return status;
}

}  // namespace hpe::bench
