#include "bench/remote/hypotheses.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "bench/common/devices.h"
#include "bench/common/table.h"

namespace hpe::bench::remote {

namespace {

constexpr double percent = 100;

const char* words(target where) {
  switch (where) {
    case target::own: return "own memory";
    case target::peer: return "the peer's memory";
    case target::host: return "host memory";
  }
  return "";
}

const char* words(bool in_columns) { return in_columns ? "spread" : "batch"; }

result number(std::string what, double value, const char* unit) { return {std::move(what), value, unit}; }

/// Returns the setting of a pass in which all elements that are read (or written, or both) are in the memory `where`.
setting whole(target where, bool reads, bool writes) {
  setting s;
  s.where = where;
  s.reads = reads;
  s.writes = writes;
  s.far_reads = s.far_writes = 1;
  return s;
}

/// The rates from which bound() is computed, measured on the same device.
struct rates {
  double local;   ///< bytes per second, read plus written, of a pass in the device's own memory
  double remote;  ///< bytes per second that a pass reads from far memory
  double step;    ///< seconds that one multiplication and addition for each float of an array take
};

rates measured_rates(experiment& e) {
  const auto bytes = static_cast<double>(e.bytes());
  setting computing;
  constexpr uint32_t many = 200;
  computing.steps = many;
  return {2 * bytes / e.seconds({}).median, bytes / e.seconds(whole(e.usual_target(), true, false)).median,
          e.seconds(computing).median / many};
}

/// Returns a lower bound, in seconds, of the time of a pass that reads the fraction `share` of its elements from far
/// memory. If in_columns is true ("spread"), the pass uses the memory, the link and the arithmetic units at the same
/// time. Otherwise ("batch"), the pass processes the far elements first, at the rate of the link, and then the near
/// elements.
double bound(const rates& r, double bytes, double share, uint32_t steps, bool in_columns) {
  const double computing = r.step * steps;
  if (in_columns) return std::max({(2 - share) * bytes / r.local, share * bytes / r.remote, computing});
  return std::max({share * bytes / r.remote, share * bytes / r.local, share * computing}) +
         std::max((1 - share) * 2 * bytes / r.local, (1 - share) * computing);
}

}  // namespace

answer bandwidth(experiment& e) {
  table t(1);
  struct way {
    const char* name;
    bool reads, writes;
  };
  const bool has_peer = e.targets().size() > 2;
  for (const target where : e.targets()) {
    const timing copy = e.seconds_of_copy(where);
    t.rate(fmt::format("H1: a copy from {}", words(where)), e.bytes(), copy);
    const double of_copy = rate_of(e.bytes(), copy.median);
    for (const way& w : {way{"reads", true, false}, way{"writes", false, true}, way{"reads and writes", true, true}}) {
      const std::size_t bytes = e.bytes() * (w.reads && w.writes ? 2 : 1);
      setting s = whole(where, w.reads, w.writes);
      t.rate(fmt::format("H1: a kernel {} {}", w.name, words(where)), bytes, e.seconds(s));
      t.lines.push_back(number("  of the copy", t.lines.back().value / of_copy, "x"));
      if (where == target::host || !has_peer) continue;
      s.on_both = true;
      t.rate(fmt::format("H1: a kernel {} {}, on both devices at once, rate of each", w.name, words(where)), bytes,
             e.seconds(s));
    }
  }
  return {t.lines, {}};
}

answer progress_over_time(experiment& e) {
  constexpr std::size_t spans = 50;
  constexpr double giga = 1e9, milli = 1e-3;
  answer a;
  picture p{"Rates during a pass", {}};
  for (const bool in_columns : {false, true}) {
    setting s;
    s.where = e.usual_target();
    s.far_reads = 0.2;
    s.far_writes = 0.1;
    s.steps = 10;
    s.in_columns = in_columns;
    a.lines.push_back(number(fmt::format("H2: 20 % remote reads, 10 % remote writes, {}", words(in_columns)),
                             e.seconds(s).median / milli, "ms"));
    const time_line found = e.progress(s, spans);
    chart c{fmt::format("{}", words(in_columns)), {"time (ms)"}, {"rate of reading (GB/s)"}, {}};
    line near_line{words(target::own), {}}, far_line{words(s.where), {}};
    for (std::size_t i = 0; i < spans; ++i) {
      const double at = (static_cast<double>(i) + 0.5) * found.seconds_a_span / milli;
      near_line.points.emplace_back(at, found.near_bytes[i] / giga);
      far_line.points.emplace_back(at, found.far_bytes[i] / giga);
    }
    const auto busy = std::count_if(found.far_bytes.begin(), found.far_bytes.end(), [](double b) { return b > 0; });
    a.lines.push_back(
        number("  share of the pass in which remote tiles end", percent * static_cast<double>(busy) / spans, "%"));
    c.lines = {near_line, far_line};
    p.charts.push_back(c);
  }
  a.pictures.push_back(p);
  return a;
}

answer overhead(experiment& e) {
  const rates r = measured_rates(e);
  const auto bytes = static_cast<double>(e.bytes());
  answer a;
  picture p{"Overhead of remote reads", {}};
  for (const bool in_columns : {true, false}) {
    chart c{fmt::format("{}", words(in_columns)), {"remote reads (%)"}, {"time, of the local pass (x)"}, {}};
    for (const uint32_t steps : {0U, 10U, 50U, 200U}) {
      line found{fmt::format("{} steps", steps), {}};
      double local = 0;
      for (const double share : {0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0}) {
        setting s;
        s.where = e.usual_target();
        s.far_reads = share;
        s.in_columns = in_columns;
        s.steps = steps;
        const double seconds = e.seconds(s).median;
        if (share == 0) local = seconds;
        found.points.emplace_back(percent * share, seconds / local);
        if (share == 0) continue;
        a.lines.push_back(number(
            fmt::format("H3: {:.0f} % remote reads, {} steps, {}: overhead", percent * share, steps, words(in_columns)),
            percent * (seconds / local - 1), "%"));
        a.lines.push_back(number("  of the bound", seconds / bound(r, bytes, share, steps, in_columns), "x"));
      }
      c.lines.push_back(found);
    }
    p.charts.push_back(c);
  }
  a.pictures.push_back(p);
  a.lines.push_back(number("H3: share of remote reads at which the link bounds a pass of 0 steps",
                           percent * r.remote * 2 / (r.local + r.remote), "%"));
  return a;
}

answer occupancy(experiment& e) {
  answer a;
  picture p{"Occupancy", {}};
  constexpr uint32_t steps = 10;
  for (const bool in_columns : {true, false}) {
    chart c{fmt::format("{}", words(in_columns)),
            {"threads (% of those that the device can run at a time)"},
            {"pass (GB/s)"},
            {}};
    for (const double share : {0.0, 0.1, 0.2, 1.0}) {
      line found{fmt::format("{:.0f} % remote reads", percent * share), {}};
      for (const double of_threads : {0.03, 0.06, 0.125, 0.25, 0.5, 1.0}) {
        setting s;
        s.where = e.usual_target();
        s.far_reads = share;
        s.in_columns = in_columns;
        s.steps = steps;
        s.occupancy = of_threads;
        found.points.emplace_back(percent * of_threads, 2 * rate_of(e.bytes(), e.seconds(s).median));
      }
      const double full = found.points.back().second;
      for (const auto& [x, y] : found.points)
        if (x < percent)
          a.lines.push_back(
              number(fmt::format("H4: {:.0f} % remote reads, {}, {:.0f} % of the threads: of the full rate",
                                 percent * share, words(in_columns), x),
                     y / full, "x"));
      c.lines.push_back(found);
    }
    p.charts.push_back(c);
  }
  a.pictures.push_back(p);
  return a;
}

answer cached_tables(experiment& e) {
  answer a;
  picture p{"Tables that all threads read", {}};
  constexpr std::size_t kibi = 1024, mebi = kibi * kibi;
  for (const double of_threads : {1.0, 0.125}) {
    chart c{fmt::format("{:.0f} % of the threads", percent * of_threads),
            {"table", scale::sizes},
            {"rate of reading (GB/s)", scale::decades},
            {}};
    std::map<std::size_t, double> own;
    for (const target where : e.targets())
      for (const bool read_only : {false, true}) {
        line found{fmt::format("{}{}", words(where), read_only ? ", read-only path" : ""), {}};
        for (const std::size_t size : {std::size_t{64}, kibi, 16 * kibi, 64 * kibi, 256 * kibi, mebi, 64 * mebi}) {
          const auto [time, bytes] = e.look_up_seconds(where, size, of_threads, read_only);
          const double rate = rate_of(bytes, time.median);
          found.points.emplace_back(static_cast<double>(size), rate);
          if (where == target::own) {
            own[size] = std::max(own[size], rate);
            continue;
          }
          a.lines.push_back(number(fmt::format("H5: {} bytes in {}{}, {:.0f} % of the threads: of own memory", size,
                                               words(where), read_only ? ", read-only path" : "", percent * of_threads),
                                   rate / own[size], "x"));
        }
        c.lines.push_back(found);
      }
    p.charts.push_back(c);
  }
  a.pictures.push_back(p);
  return a;
}

answer atomics(experiment& e) {
  answer a;
  constexpr double giga = 1e9;
  for (const uint32_t entries : {1U, 1U << 10, 1U << 24})
    for (const target where : e.targets()) {
      const auto [time, adds] = e.adding_seconds(where, entries);
      a.lines.push_back(number(fmt::format("atomic additions to {} counters in {}", entries, words(where)),
                               adds / time.median / giga, "thousand million a second"));
    }
  return a;
}

answer filters(experiment& e) {
  answer a;
  constexpr double micro = 1e-6;
  const std::vector<uint32_t> sides = on_gpus() ? std::vector<uint32_t>{128, 4096, 24576} : std::vector<uint32_t>{129};
  for (const uint32_t side : sides)
    for (uint32_t reach = 1; reach <= most_reach; ++reach) {
      const std::string name = fmt::format("filter {0} x {0} of {1}^2 pixels, weights ", 2 * reach + 1, side);
      const timing copied = e.filter_seconds(side, reach, target::own, weight_path::parameter);
      a.lines.push_back(number(name + "in the parameters", copied.median / micro, "us"));
      for (const target where : e.targets())
        for (const weight_path path : {weight_path::plain, weight_path::read_only}) {
          // With path `plain`, each weight is loaded over the link again for each pixel, so that larger images would
          // take minutes.
          if (side > 128 && where != target::own && path == weight_path::plain) continue;
          a.lines.push_back(
              number(fmt::format("  in {}{}", words(where), path == weight_path::read_only ? ", read-only path" : ""),
                     e.filter_seconds(side, reach, where, path).median / copied.median, "x"));
        }
    }
  return a;
}

}  // namespace hpe::bench::remote
