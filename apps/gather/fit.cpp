#include "apps/gather/fit.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <limits>

#include "apps/command_line/bad_input.h"
#include "apps/command_line/progress.h"
#include "apps/command_line/report.h"

namespace hpe::gather {

namespace {

constexpr std::size_t element = 8, index = 4;
constexpr std::size_t least_table = std::size_t{1} << 21;
/// Case II is measured on a table of 128 MiB, as in the paper.
constexpr std::size_t partitioned_table = std::size_t{128} << 20;

problem of_size(way direction, std::size_t bytes, std::uint64_t least_count, std::uint64_t most_count) {
  const std::uint64_t elements = bytes / element;
  return {direction,       element,           index, elements, std::clamp(elements, least_count, most_count),
          duplicates::any, out_of_range::skip};
}

/// Returns the levels whose times of a miss are x[first], x[first + 1], ..., without the levels whose time is 0.
std::vector<level> found(const std::vector<double>& capacities, const std::vector<double>& x, std::size_t first,
                         bool thrashes = false) {
  std::vector<level> levels;
  for (std::size_t j = 0; j < capacities.size(); ++j)
    if (x[first + j] > 0) levels.push_back({capacities[j], x[first + j], thrashes});
  return levels;
}

/// Returns the numbers from * 2^k and 1.5 * from * 2^k that are at most `to`.
std::vector<double> powers_and_middles(double from, double to) {
  std::vector<double> all;
  for (double c = from; c <= to; c *= 2) all.insert(all.end(), {c, 1.5 * c});
  while (!all.empty() && all.back() > to) all.pop_back();
  return all;
}

class fitting {
 public:
  fitting(stopwatch& clock, std::size_t largest) : clock_(clock), largest_(largest) {
    const hpeDeviceInfo info = device_info(clock.device());
    m_.device = info.name;
    m_.soft = info.kind == HPE_DEVICE_SOFT;
    m_.line = m_.soft ? 64 : 32;     // bytes of a CPU's cache line, or of a sector of a GPU's cache
    m_.together = m_.soft ? 1 : 32;  // one CPU thread, or the 32 threads of a warp
    m_.most_chunks = most_chunks(clock.device());
    most_count_ = m_.soft ? std::uint64_t{1} << 23 : std::uint64_t{1} << 27;
  }

  parameters all(const std::function<void(const std::string&)>& told) {
    told("launches");
    warm_up();
    m_.launch = launch();
    told("sequential access");
    sequential();
    passes();
    for (const way direction : {way::gather, way::scatter}) {
      told(direction == way::gather ? "gathers" : "scatters");
      uniform(direction);
      first_use(direction);
      partitioned(direction);
      partition(direction);
    }
    return m_;
  }

 private:
  [[nodiscard]] double above_launch(double seconds) const { return std::max(seconds - m_.launch, 0.1 * seconds); }
  [[nodiscard]] access_times& times(way direction) { return direction == way::gather ? m_.gather : m_.scatter; }
  [[nodiscard]] static double bytes_in_order(const problem& p) {
    return static_cast<double>(p.count) * static_cast<double>(p.element + p.index);
  }

  struct run {
    problem what;
    choice how;
    stopwatch::pattern indices;
  };
  /// Measures all runs twice, in two sweeps, and returns the shorter time of each run. Other programs on the machine
  /// only add time, often to many consecutive runs.
  [[nodiscard]] std::vector<double> seconds(const std::vector<run>& runs) {
    std::vector<double> times(runs.size(), std::numeric_limits<double>::max());
    for (int sweep = 0; sweep < 2; ++sweep)
      for (std::size_t i = 0; i < runs.size(); ++i)
        times[i] = std::min(times[i], clock_.seconds(runs[i].what, runs[i].how, runs[i].indices));
    return times;
  }

  /// An idle device raises its clocks during the first tens of milliseconds of work; until then, a launch takes nearly
  /// twice as long.
  void warm_up() {
    const problem all = of_size(way::gather, largest_, 1, most_count_);
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
    while (std::chrono::steady_clock::now() < end) static_cast<void>(clock_.seconds(all, {}, {}));
  }

  [[nodiscard]] double launch() {
    constexpr int sweeps = 5, repeats = 15;
    double least = std::numeric_limits<double>::max();
    for (int sweep = 0; sweep < sweeps; ++sweep)
      least = std::min(least, clock_.seconds({way::gather, element, index, 64, 64}, {}, {}, repeats));
    return least;
  }

  void sequential() {
    std::vector<run> runs;
    for (std::size_t bytes = std::size_t{1} << 18; bytes <= largest_; bytes *= 2)
      runs.push_back({of_size(way::gather, bytes, 1, ~std::uint64_t{0}), {}, {stopwatch::order::sequential}});
    const std::vector<double> times = seconds(runs);
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const double moved = bytes_in_order(runs[i].what) + static_cast<double>(runs[i].what.table * element);
      m_.sequential.push_back({moved, above_launch(times[i]) / moved});
    }
  }

  /// Returns the time of one random access of a run: the time of the run without the time of its sequential parts,
  /// divided by the number of accesses.
  [[nodiscard]] double random_part(const problem& p, double seconds, double in_order) const {
    const double rest = above_launch(seconds) - in_order;
    return std::max(rest, 0.02 * seconds) / static_cast<double>(p.count);
  }

  /// Fits the time of a pass from two runs that differ only in the number of passes, over a table that fits into a
  /// cache.
  void passes() {
    const problem p = of_size(way::gather, std::size_t{1} << 18,
                              std::min<std::uint64_t>(most_count_ / 4, largest_ / element), most_count_);
    constexpr std::uint32_t few = 8, many = 40;
    const std::vector<double> times =
        seconds({{p, {method::multi_pass, many}, {}}, {p, {method::multi_pass, few}, {}}});
    m_.pass = std::max((times[0] - times[1]) / (many - few), 0.0) / static_cast<double>(p.count);
  }

  void uniform(way direction) {
    const std::vector<double> capacities = powers_and_middles(0x1p17, 0.75 * static_cast<double>(largest_));
    const std::size_t levels = capacities.size();
    std::vector<std::vector<double>> columns(1 + 2 * levels);
    std::vector<double> values, whole;
    std::vector<run> runs;
    for (const double table : powers_and_middles(0x1p17, static_cast<double>(largest_)))
      runs.push_back(
          {of_size(direction, static_cast<std::size_t>(table), std::uint64_t{1} << 17, most_count_), {}, {}});
    const std::vector<double> times_of_runs = seconds(runs);
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const problem& p = runs[i].what;
      const double n = static_cast<double>(p.count), table = static_cast<double>(p.table * element);
      const double in_order = bytes_in_order(p) * m_.sequential_at(bytes_in_order(p) + table);
      values.push_back(random_part(p, times_of_runs[i], in_order));
      // The fit divides errors by the time of the whole run, because the random part of a short run is small and
      // inaccurate.
      whole.push_back(times_of_runs[i] / n);
      columns[0].push_back(1);
      for (std::size_t j = 0; j < levels; ++j) {
        columns[1 + j].push_back(run_misses({capacities[j], 0, false}, n, table, m_.line, 1));
        columns[1 + levels + j].push_back(run_misses({capacities[j], 0, true}, n, table, m_.line, 1));
      }
    }
    const std::vector<double> x = fit_not_negative(columns, values, whole);
    times(direction).hit = x[0];
    times(direction).levels = found(capacities, x, 1);
    for (const level& l : found(capacities, x, 1 + levels, true)) times(direction).levels.push_back(l);
  }

  /// Fits first_use. In a pass over a chunk that fits into a level, only the first access to each block misses the
  /// level. Such a miss takes less time than a miss in a table that does not fit.
  void first_use(way direction) {
    const problem p = of_size(direction, std::min(partitioned_table, largest_), 1, most_count_);
    const choice how{method::multi_pass, 8};
    double& part = times(direction).first_use;
    part = 0;
    const double without = predict(m_, p, how).total();
    part = 1;
    const double whole = predict(m_, p, how).total() - without;
    if (whole > 0) part = std::clamp((seconds({{p, how, {}}}).front() - without) / whole, 0.0, 1.0);
  }

  void partitioned(way direction) {
    const std::vector<double> capacities = powers_and_middles(1, 0x1p19);
    std::vector<std::vector<double>> columns(1 + capacities.size());
    std::vector<double> values;
    const problem p = of_size(direction, std::min(partitioned_table, largest_), 1, most_count_);
    const double table = static_cast<double>(p.table * element);
    const double in_order = (bytes_in_order(p) + table) * m_.sequential_at(bytes_in_order(p) + table);
    std::vector<run> runs;
    for (std::uint64_t partitions = 2; partitions <= p.table / 16; partitions *= 4)
      runs.push_back({p, {}, {stopwatch::order::partitioned, partitions}});
    const std::vector<double> times_of_runs = seconds(runs);
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const double streams = static_cast<double>(runs[i].indices.partitions);
      values.push_back(random_part(p, times_of_runs[i], in_order));
      columns[0].push_back(partition_misses(streams, m_.together, element, m_.line));
      for (std::size_t j = 0; j < capacities.size(); ++j)
        columns[1 + j].push_back(std::max(0.0, 1 - capacities[j] / streams));
    }
    const std::vector<double> x = fit_not_negative(columns, values, values);
    times(direction).transaction = x[0];
    times(direction).partitioned = found(capacities, x, 1);
  }

  /// Fits the time to partition: the time of a partitioned run, less the predicted time of its launches and accesses.
  void partition(way direction) {
    const problem p = of_size(direction, std::min(partitioned_table, largest_), 1, most_count_);
    constexpr std::uint32_t chunks = 128;
    const double all = seconds({{p, {method::partitioned, chunks}, {}}}).front();
    const prediction without = predict(m_, p, {method::partitioned, chunks});
    const double rest = std::max(all - without.launch - without.sequential - without.random, 0.1 * all);
    times(direction).partition = rest / bytes_in_order(p);
  }

  stopwatch& clock_;
  const std::size_t largest_;
  std::uint64_t most_count_ = 0;
  parameters m_;
};

}  // namespace

stopwatch::stopwatch(int device, std::size_t bytes)
    : device_(device),
      table_(bytes, on_device(device)),
      values_(bytes, on_device(device)),
      indices_(bytes / element, on_device(device)),
      random_({device}) {
  fill(table_.data(), 1, table_.size());
  fill(values_.data(), 1, values_.size());
}

void stopwatch::make(const problem& what, const pattern& indices) {
  const std::string wanted =
      fmt::format("{} {} {} {}", static_cast<int>(indices.how), indices.partitions, what.table, what.count);
  if (wanted == made_) return;
  made_ = wanted;
  const shares parts(what.count, {device_});
  // With one partition, the indices ascend.
  const std::uint64_t partitions = indices.how == order::sequential ? 1 : indices.partitions;
  random_.fill(indices_.data(), index, parts, what.table, 1, partitions);
  synchronize();
}

double stopwatch::seconds(const problem& what, const choice& how, const pattern& indices, int repeats) {
  if (what.count * what.element > values_.size() || what.table * what.element > table_.size() ||
      what.count > indices_.size() || what.index != index)
    throw error(HPE_ERROR_INVALID_ARGUMENT, "the arrays of a stopwatch are too small for this problem");
  make(what, indices);
  plan work(what, how, {device_});
  constexpr bool quiet = true;
  return command_line::median_seconds(repeats, quiet,
                                      [&] { work.run(table_.data(), indices_.data(), values_.data()); });
}

parameters fit(stopwatch& clock, std::size_t largest, const std::function<void(const std::string&)>& told) {
  return fitting(clock, largest).all(told ? told : [](const std::string&) {});
}

double link_rate(int from, int to) {
  constexpr std::size_t bytes = std::size_t{64} << 20;
  const array<std::byte> source(bytes, on_device(from)), target(bytes, on_device(to));
  fill(source.data(), 1, bytes);
  constexpr bool quiet = true;
  return static_cast<double>(bytes) /
         command_line::median_seconds(3, quiet, [&] { hpe::copy(target.data(), source.data(), bytes); });
}

std::string cache_file(int device) {
  const char* const cache = std::getenv("XDG_CACHE_HOME");  // NOLINT(concurrency-mt-unsafe): no thread sets variables
  const char* const home = std::getenv("HOME");             // NOLINT(concurrency-mt-unsafe)
  if (cache == nullptr && home == nullptr) return "";
  std::string name = fmt::format("gather-{}-{}", device_info(device).name, device_info(device).compute_units);
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '-';
  return fmt::format("{}/hpe/{}.json", cache != nullptr ? cache : std::string(home) + "/.cache", name);
}

parameters fitted(int device, bool again, const std::function<void(const std::string&)>& told) {
  const std::string path = cache_file(device);
  if (std::ifstream file(path); !again && file) {
    try {
      return parameters_of_json({std::istreambuf_iterator<char>(file), {}}, path);
    } catch (const command_line::bad_input&) {
      // The file is invalid, so the device is measured below.
    }
  }
  // The table, values, indices and the streams of a partition together take four times the bytes of the largest table.
  const hpeDeviceInfo info = device_info(device);
  std::size_t largest = std::size_t{1} << (info.kind == HPE_DEVICE_SOFT ? 28 : 32);
  while (largest > least_table && largest > info.memory_free / 5) largest /= 2;
  stopwatch clock(device, largest);
  parameters m = fit(clock, largest, told);
  if (path.empty()) return m;
  command_line::keep_in_cache(path, as_json(m));
  return m;
}

}  // namespace hpe::gather
