#include "apps/gather/model.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/command_line/bad_input.h"
#include "apps/command_line/report.h"

namespace hpe::gather {

namespace {

using command_line::bad_input;

/// Another method is chosen only if its predicted time is below this fraction of the predicted time of a single pass.
constexpr double worth = 0.98;

/// Returns the predicted seconds of one uniform access, in a run of `passes` passes over a table of `bytes` bytes.
double uniform_access(const access_times& t, double accesses, double bytes, double line, double passes) {
  double seconds = t.hit;
  for (const level& l : t.levels) {
    const bool chunk_fits = passes > 1 && bytes / passes <= l.capacity;
    seconds += l.seconds * (chunk_fits ? t.first_use : 1) * run_misses(l, accesses, bytes, line, passes);
  }
  return seconds;
}

/// Returns the fraction of accesses to `partitions` sequences for which the current line of the sequence has been
/// evicted.
double lines_lost(double partitions, double capacity) { return std::max(0.0, 1 - capacity / partitions); }

double partitioned_access(const access_times& t, const parameters& machine, double partitions, double element) {
  double seconds = t.transaction * partition_misses(partitions, machine.together, element, machine.line);
  for (const level& l : t.partitioned) seconds += l.seconds * lines_lost(partitions, l.capacity);
  return seconds;
}

}  // namespace

double distinct_blocks(double accesses, double blocks) {
  return blocks <= 1 ? std::min(accesses, 1.0) : -blocks * std::expm1(accesses * std::log1p(-1 / blocks));
}

double uniform_misses(double accesses, double blocks, double lines) {
  const double distinct = distinct_blocks(accesses, blocks);
  if (accesses <= 0) return 0;
  if (distinct <= lines) return distinct / accesses;
  return (distinct + (distinct - lines) / distinct * (accesses - distinct)) / accesses;
}

double thrashing_misses(double accesses, double blocks, double lines) {
  const double distinct = distinct_blocks(accesses, blocks);
  return accesses <= 0 ? 0 : distinct <= lines ? distinct / accesses : 1;
}

double run_misses(const level& l, double accesses, double bytes, double line, double passes) {
  if (bytes <= l.capacity) return 0;
  if (passes <= 1) return l.thrashes ? 1 : 1 - l.capacity / bytes;
  return (l.thrashes ? thrashing_misses : uniform_misses)(accesses / passes, bytes / passes / line, l.capacity / line);
}

double partition_misses(double partitions, double together, double element, double line) {
  const double distinct = distinct_blocks(together, partitions);
  return distinct * std::ceil(together / distinct * element / line) / together;
}

double parameters::mean_sequential() const {
  double weights = 0, sum = 0;
  for (const sequential_time& s : sequential) {
    weights += s.bytes;
    sum += s.bytes / s.seconds;
  }
  return weights > 0 ? sum / weights : 0;
}

double parameters::sequential_at(double bytes) const {
  if (sequential.empty()) return 0;
  if (bytes <= sequential.front().bytes) return sequential.front().seconds;
  for (std::size_t i = 1; i < sequential.size(); ++i) {
    const sequential_time &a = sequential[i - 1], &b = sequential[i];
    if (bytes > b.bytes) continue;
    const double part = std::log(bytes / a.bytes) / std::log(b.bytes / a.bytes);
    return a.seconds + part * (b.seconds - a.seconds);
  }
  return sequential.back().seconds;
}

prediction predict(const parameters& machine, const problem& what, const choice& how, double partitions) {
  const access_times& times = machine.of(what.direction);
  const auto n = static_cast<double>(what.count), z = static_cast<double>(what.element),
             l = static_cast<double>(what.index), table = static_cast<double>(what.table) * z;
  const double each_byte = machine.sequential_at(n * (z + l) + table);
  const double chunks = how.how == method::single_pass ? 1 : std::max(1.0, double(how.chunks));
  prediction p{how};
  const double random = partitions > 0 ? partitioned_access(times, machine, partitions, z)
                                       : uniform_access(times, n, table, machine.line, chunks);
  p.random = n * random;
  p.sequential = n * (z + l) * each_byte;
  if (partitions > 0) p.sequential += std::min(table, n * z) * each_byte;
  if (how.how == method::multi_pass && chunks > 1) {
    // A pass reads all indices, and those lines of the values that hold a value of the pass's chunk.
    const double lines_touched = 1 - std::pow(1 - 1 / chunks, std::max(machine.line / z, 1.0));
    p.sequential = n * z * chunks * lines_touched * each_byte + n * machine.pass * chunks;
  }
  if (how.how == method::partitioned) p.partition = n * (z + l) * times.partition;
  // The launch of a kernel takes no extra time while an earlier kernel runs.
  const double launches = how.how == method::multi_pass ? chunks : how.how == method::partitioned ? 4 : 1;
  p.launch = machine.launch + std::max(0.0, (launches - 1) * machine.launch - p.sequential - p.random - p.partition);
  return p;
}

double predict_sequential(const parameters& machine, const problem& what) {
  const double bytes = static_cast<double>(what.count) * static_cast<double>(2 * what.element + what.index);
  return machine.launch + bytes * machine.sequential_at(bytes);
}

std::vector<prediction> choices(const parameters& machine, const problem& what) {
  std::vector<prediction> all{predict(machine, what, {method::single_pass, 1})};
  constexpr std::uint32_t most_passes = 64, least_chunks = 16;
  for (std::uint32_t c = 2; c <= most_passes; c *= 2) all.push_back(predict(machine, what, {method::multi_pass, c}));
  for (std::uint32_t c = least_chunks; c <= machine.most_chunks && !what.keeps_order(); c *= 2)
    all.push_back(predict(machine, what, {method::partitioned, c}));
  const auto rank = [](const prediction& p) { return p.total() * (p.how.how == method::single_pass ? worth : 1); };
  std::stable_sort(all.begin(), all.end(), [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  return all;
}

std::vector<double> fit_not_negative(const std::vector<std::vector<double>>& columns, const std::vector<double>& values,
                                     const std::vector<double>& units) {
  // Coordinate descent: it keeps the numbers non-negative, and finds the minimum because the problem is convex.
  constexpr int rounds = 20000;
  std::vector<double> x(columns.size(), 0), rest(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) rest[i] = values[i] / units[i];
  for (int round = 0; round < rounds; ++round) {
    double largest = 0;
    for (std::size_t j = 0; j < columns.size(); ++j) {
      double slope = 0, curve = 0;
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double a = columns[j][i] / units[i];
        slope += a * rest[i];
        curve += a * a;
      }
      if (curve == 0) continue;
      const double next = std::max(0.0, x[j] + slope / curve), step = next - x[j];
      for (std::size_t i = 0; i < values.size(); ++i) rest[i] -= step * columns[j][i] / units[i];
      x[j] = next;
      largest = std::max(largest, std::abs(step) * std::sqrt(curve));
    }
    if (largest < 1e-9) break;
  }
  return x;
}

std::string explain(const parameters& machine, const problem& what) {
  const access_times& times = machine.of(what.direction);
  std::string text =
      fmt::format("{}: sequential {:.1f} GB/s (weighted mean), l = {:.0f} bytes, w = {:.0f}; an access takes {:.3f} ns",
                  machine.device, machine.mean_sequential() / 1e9, machine.line, machine.together, 1e9 * times.hit);
  for (const level& l : times.levels)
    text += fmt::format(", {:+.3f} ns {} {:.3g} MiB", 1e9 * l.seconds, l.thrashes ? "on tables beyond" : "beyond",
                        l.capacity / 0x1p20);
  text += fmt::format("\n{:<14}{:>7}{:>12}{:>12}{:>12}{:>12}{:>12}  (ms, predicted)\n", "method", "chunks", "launches",
                      "sequential", "random", "partition", "total");
  for (const prediction& p : choices(machine, what))
    text += fmt::format("{:<14}{:>7}{:>12.4f}{:>12.4f}{:>12.4f}{:>12.4f}{:>12.4f}\n", name_of(p.how.how), p.how.chunks,
                        1e3 * p.launch, 1e3 * p.sequential, 1e3 * p.random, 1e3 * p.partition, 1e3 * p.total());
  return text;
}

namespace {

using nlohmann::ordered_json;

ordered_json of_levels(const std::vector<level>& levels) {
  ordered_json all = ordered_json::array();
  for (const level& l : levels)
    all.push_back({{"capacity", l.capacity}, {"seconds", l.seconds}, {"thrashes", l.thrashes}});
  return all;
}
ordered_json of_times(const access_times& t) {
  return {{"hit", t.hit},
          {"levels", of_levels(t.levels)},
          {"first_use", t.first_use},
          {"transaction", t.transaction},
          {"partitioned", of_levels(t.partitioned)},
          {"partition", t.partition}};
}

/// Reads a member, which must be a finite number of at least 0.
double number(const ordered_json& from, const char* name) {
  const double value = from.at(name).get<double>();
  if (!(value >= 0) || std::isinf(value)) throw bad_input(fmt::format("{} must be a number of at least 0", name));
  return value;
}
std::vector<level> levels_of(const ordered_json& from) {
  std::vector<level> all;
  for (const ordered_json& l : from)
    all.push_back({number(l, "capacity"), number(l, "seconds"), l.at("thrashes").get<bool>()});
  return all;
}
access_times times_of(const ordered_json& from) {
  return {number(from, "hit"),         levels_of(from.at("levels")),      number(from, "first_use"),
          number(from, "transaction"), levels_of(from.at("partitioned")), number(from, "partition")};
}

constexpr int format = 3;  ///< version of the cache file's format; files of other versions are invalid

}  // namespace

std::string as_json(const parameters& m) {
  ordered_json curve = ordered_json::array();
  for (const sequential_time& s : m.sequential) curve.push_back({{"bytes", s.bytes}, {"seconds", s.seconds}});
  const ordered_json all{{"format", format},
                         {"device", m.device},
                         {"soft", m.soft},
                         {"line", m.line},
                         {"together", m.together},
                         {"most_chunks", m.most_chunks},
                         {"launch", m.launch},
                         {"pass", m.pass},
                         {"sequential", curve},
                         {"gather", of_times(m.gather)},
                         {"scatter", of_times(m.scatter)}};
  return command_line::text_of(all, 2) + "\n";
}

parameters parameters_of_json(const std::string& text, const std::string& file) {
  try {
    const ordered_json all = ordered_json::parse(text);
    if (all.at("format").get<int>() != format) throw bad_input("another version of hpe wrote it");
    parameters m;
    m.device = all.at("device").get<std::string>();
    m.soft = all.at("soft").get<bool>();
    m.line = number(all, "line");
    m.together = number(all, "together");
    m.most_chunks = number(all, "most_chunks");
    m.launch = number(all, "launch");
    m.pass = number(all, "pass");
    for (const ordered_json& s : all.at("sequential"))
      m.sequential.push_back({number(s, "bytes"), number(s, "seconds")});
    m.gather = times_of(all.at("gather"));
    m.scatter = times_of(all.at("scatter"));
    if (m.line < 1 || m.together < 1) throw bad_input("line and together must be at least 1");
    return m;
  } catch (const ordered_json::exception& wrong) {
    throw bad_input(fmt::format("{} is not a gather-model file: {}", file, wrong.what()));
  } catch (const bad_input& wrong) {
    throw bad_input(fmt::format("{} is not a gather-model file: {}", file, wrong.what()));
  }
}

}  // namespace hpe::gather
