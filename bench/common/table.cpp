#include "bench/common/table.h"

#include <fmt/core.h>

namespace hpe::bench {

namespace {

std::string span(double from, double to, int digits) {
  return fmt::format("({:.{}f}..{:.{}f})", from, digits, to, digits);
}

}  // namespace

void table::rate(const std::string& what, std::size_t bytes, const timing& time) {
  lines.push_back({what, rate_of(bytes, time.median), "GB/s", "", true,
                   span(rate_of(bytes, time.slowest), rate_of(bytes, time.fastest), 1)});
}

void table::rate(const std::string& what, std::size_t bytes, const timing& time, double of, const std::string& of_what,
                 double bar) {
  rate(what, bytes, time);
  share(time, bytes, of, of_what, bar);
}

void table::share(const timing& time, std::size_t bytes, double of, const std::string& of_what, double bar) {
  const double value = rate_of(bytes, time.median) / of;
  lines.push_back({"  " + of_what, value, "x", bar > 0 ? fmt::format(">= {}", bar) : "", value >= bar,
                   span(rate_of(bytes, time.slowest) / of, rate_of(bytes, time.fastest) / of, 3)});
}

void table::ratio(const std::string& what, const timing& first, const timing& second, double bar) {
  const double value = second.median / first.median;
  lines.push_back({what, value, "x", bar > 0 ? fmt::format(">= {}", bar) : "", value >= bar,
                   span(second.median / first.slowest, second.median / first.fastest, 3)});
}

void table::time(const std::string& what, const timing& all, std::size_t count, double most) {
  const double each = 1e6 / static_cast<double>(count);
  lines.push_back({what, all.median * each, "us", most > 0 ? fmt::format("<= {:.1f}", most * 1e6) : "",
                   most <= 0 || all.median * each <= most * 1e6, span(all.fastest * each, all.slowest * each, 1)});
}

void table::number(const std::string& what, double value, const std::string& unit) {
  lines.push_back({what, value, unit, "", true});
}

}  // namespace hpe::bench
