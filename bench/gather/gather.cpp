// Gather and scatter of 8-byte elements by random indices: each method of hpe is compared with references on the same
// arrays. The references on GPUs are Thrust and a plain kernel on one GPU, plain remote access on two GPUs, and plain
// access to mapped host memory. The references on soft devices are a plain loop and oneTBB with the same number of
// threads. Before each timed run, the benchmark overwrites the results with a poison value; after the run, it checks
// samples of the results.

#include <fmt/core.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <memory>

#include "apps/gather/gather_plan.h"
#include "bench/common/devices.h"
#include "bench/common/measure.h"
#include "bench/gather/accuracy.h"
#include "bench/gather/peers.h"

namespace {

using hpe::bench::movement;
using hpe::bench::result;
using hpe::bench::timing;
using hpe::gather::choice;
using hpe::gather::method;
using hpe::gather::way;

constexpr std::size_t element = sizeof(std::uint64_t);

std::string in_words(double bytes) {
  return bytes < 0x1p30 ? fmt::format("{:.0f} MB", bytes / 0x1p20) : fmt::format("{:.0f} GB", bytes / 0x1p30);
}
/// Returns the size in bytes of the last-level cache, from Linux's sysfs. sysconf is not used, because it returns 384
/// MiB on an AMD EPYC with 32 MiB.
double last_cache() {
  double kilobytes = 0;
  for (int level = 0;; ++level) {
    std::ifstream size(fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/size", level));
    if (!(size >> kilobytes)) return kilobytes * 0x1p10;
  }
}
/// The largest number of indices in a measurement.
constexpr std::uint64_t most_indices = std::uint64_t{1} << 29;

/// Returns the device memory, in bytes, that each of `devices` GPUs needs for a table of `table_bytes` bytes: an equal
/// share of the table, and of three times the indices and values, plus 10 %. The second and third of these copies are
/// the streams of two plans with method `partitioned`.
double room_of(double table_bytes, std::size_t devices) {
  const double count = std::min(table_bytes / element, static_cast<double>(most_indices));
  const double index = table_bytes / element > 0x1p32 ? 8 : 4;
  return 1.1 * (table_bytes + 3 * count * (index + element)) / static_cast<double>(devices);
}
const char* name_of(way w) { return w == way::gather ? "gather" : "scatter"; }

/// The arrays of one measurement, with random contents.
class arrays {
 public:
  arrays(way w, std::uint64_t table, std::uint64_t count, const std::vector<int>& devices, bool on_host = false)
      : what{w, element, table > (std::uint64_t{1} << 32) ? std::size_t{8} : std::size_t{4}, table, count},
        devices_(devices),
        parts_(count, devices),
        table_(table, on_host ? hpe::on_host() : hpe::gather::shares(table, devices).where(element)),
        indices_(count * what.index, parts_.where(what.index)),
        values_(count, parts_.where(element)),
        random_(devices) {
    // The content of each element follows from its index, so that check() can compute it. The table is not split into
    // shares if there is one device or if the table is in host memory.
    fill_contents(w == way::gather ? table_ : values_, w == way::gather ? table : count);
    random_.fill(indices_.data(), what.index, parts_, table, 1);
    hpe::synchronize();
  }

  [[nodiscard]] movement as_movement() const {
    return {what.direction,  static_cast<std::uint32_t>(what.index),
            table_.data(),   what.table,
            indices_.data(), values_.data(),
            what.count};
  }

  void poison() const {
    const auto& results = what.direction == way::gather ? values_ : table_;
    hpe::fill(results.data(), 0xA5, results.size() * element);
    hpe::synchronize();
  }

  /// Checks samples from all parts of the result; throws std::runtime_error if one is wrong.
  void check(const std::string& who) const {
    constexpr std::uint64_t samples = 48;
    for (std::uint64_t s = 0; s < samples; ++s) {
      const std::uint64_t i = (what.count - 1) / samples * s + s * 37 % 1001 % (what.count / samples + 1);
      const std::uint64_t x = what.index == 4 ? reinterpret_cast<const std::uint32_t*>(indices_.data())[i]
                                              : reinterpret_cast<const std::uint64_t*>(indices_.data())[i];
      const bool right = what.direction == way::gather ? values_[i] == table_[x] : written_by_some(x);
      if (!right) throw std::runtime_error(fmt::format("{}: the result at place {} is wrong", who, i));
    }
  }

  void run(hpe::gather::plan& plan) const { plan.run(table_.data(), indices_.data(), values_.data()); }

  const hpe::gather::problem what;

 private:
  void fill_contents(const hpe::array<std::uint64_t>& to, std::uint64_t size) {
    random_.fill(to.data(), element, hpe::gather::shares(size, devices_), marked, 2);
  }
  /// Whether a scattered value was written to element x: scattered values are below `marked`, the poison value is not.
  [[nodiscard]] bool written_by_some(std::uint64_t x) const { return table_[x] < marked; }

  static constexpr std::uint64_t marked = std::uint64_t{1} << 48;
  std::vector<int> devices_;
  hpe::gather::shares parts_;
  hpe::array<std::uint64_t> table_;
  hpe::array<std::byte> indices_;
  hpe::array<std::uint64_t> values_;
  hpe::gather::random_indices random_;
};

/// Copies of the same arrays in ordinary memory, for the references on the host: if they used hpe memory, page faults
/// would slow them down.
class host_arrays {
 public:
  explicit host_arrays(const movement& of_hpe)
      : table_(of_hpe.table, of_hpe.table + of_hpe.table_count),
        values_(of_hpe.values, of_hpe.values + of_hpe.count),
        indices_(static_cast<const std::byte*>(of_hpe.indices),
                 static_cast<const std::byte*>(of_hpe.indices) + of_hpe.count * of_hpe.index),
        what_(of_hpe) {
    what_.table = table_.data();
    what_.indices = indices_.data();
    what_.values = values_.data();
  }
  [[nodiscard]] const movement& as_movement() const { return what_; }
  void poison() const {
    const bool gathers = what_.way == way::gather;
    std::fill_n(gathers ? what_.values : what_.table, gathers ? what_.count : what_.table_count, ~std::uint64_t{0});
  }

 private:
  std::vector<std::uint64_t> table_, values_;
  std::vector<std::byte> indices_;
  movement what_;
};

class program {
 public:
  explicit program(const hpe::bench::arguments& given) : given_(given) {}

  timing timed(const arrays& data, const std::string& who, const std::function<void()>& queue) const {
    const timing time = hpe::bench::timed(
        given_.repeats, [&] { data.poison(); },
        [&] {
          queue();
          hpe::synchronize();
        });
    data.check(who);
    return time;
  }
  double seconds(const arrays& data, const std::string& who, const std::function<void()>& queue) const {
    return timed(data, who, queue).median;
  }

  timing timed(const arrays& data, const choice& how, const std::vector<int>& devices) const {
    hpe::gather::plan plan(data.what, how, devices);
    return timed(data, hpe::gather::name_of(how.how), [&] { data.run(plan); });
  }
  double seconds(const arrays& data, const choice& how, const std::vector<int>& devices) const {
    return timed(data, how, devices).median;
  }

  void add(const std::string& what, double value, const std::string& unit, double bar = 0) {
    results.push_back({what, value, unit, bar > 0 ? fmt::format(">= {:.2f}", bar) : "", value >= bar});
  }
  void add_rate(const std::string& what, const arrays& data, double time) {
    add(what, static_cast<double>(data.what.count) / time / 1e9, "G elements/s");
  }

  /// A method of gather or scatter, with its name and the function that queues it.
  struct named {
    std::string name;
    std::function<void()> queue;
  };
  /// hpe's methods on device 0, and their plans.
  struct methods {
    std::vector<named> ways;
    std::vector<std::unique_ptr<hpe::gather::plan>> plans;
  };
  [[nodiscard]] static methods methods_of(const arrays& data, const std::vector<choice>& choices) {
    methods all;
    for (const choice& how : choices) {
      auto* const plan =
          all.plans.emplace_back(std::make_unique<hpe::gather::plan>(data.what, how, std::vector{0})).get();
      const std::string chunks = how.chunks > 1 ? fmt::format(", {} chunks", how.chunks) : "";
      all.ways.push_back({hpe::gather::name_of(how.how) + chunks, [&data, plan] { data.run(*plan); }});
    }
    return all;
  }
  /// Returns a contender that runs a method on `data` and checks the result of each run.
  [[nodiscard]] static hpe::bench::contender contender_of(const arrays& data, const named& way) {
    return {[&data, &way, first = std::make_shared<bool>(true)] {
              // `data` contains the results of the previous run, possibly by another method.
              if (!*first) data.check("a run before " + way.name);
              *first = false;
              data.poison();
            },
            [&way] {
              way.queue();
              hpe::synchronize();
            }};
  }

  void one_gpu(double table_bytes) {
    const auto table = static_cast<std::uint64_t>(table_bytes / element);
    const std::uint64_t count = std::min(table, most_indices);
    for (const way w : {way::gather, way::scatter}) {
      const arrays data(w, table, count, {0});
      const movement m = data.as_movement();
      const std::string what = fmt::format("{}, {}, {} indices", name_of(w), in_words(table_bytes), count);
      methods all = methods_of(
          data,
          {{method::single_pass, 1}, {method::multi_pass, 4}, {method::partitioned, 32}, {method::partitioned, 256}});
      all.ways.push_back({"Thrust", [&] { hpe::bench::by_thrust(0, m); }});
      all.ways.push_back({"plain kernel", [&] { hpe::bench::by_plain_kernel(0, m); }});
      const std::vector<timing> times = by_turns(data, all.ways, {});
      add_rates(what, data, all.ways, times);
      const double best = fastest(times, all.plans.size()).median;
      add(what + ": best, of Thrust", times[all.plans.size()].median / best, "x", 1);
      add(what + ": best, of a plain kernel", times[all.plans.size() + 1].median / best, "x", 1);
    }
  }

  void two_gpus(double table_bytes) {
    const auto table = static_cast<std::uint64_t>(table_bytes / element);
    for (const way w : {way::gather, way::scatter}) {
      const arrays data(w, table, std::min(table, most_indices), {0, 1});
      const std::string what = fmt::format("2 GPUs, {}, {}", name_of(w), in_words(table_bytes));
      const double remote = seconds(data, choice{method::single_pass, 1}, {0, 1});
      const double exchange = seconds(data, choice{method::partitioned, 1}, {0, 1});
      add_rate(what + ": remote access", data, remote);
      add_rate(what + ": bulk exchange", data, exchange);
      add(what + ": bulk exchange, of remote access", remote / exchange, "x", 3);
    }
  }

  void host_memory(double table_bytes) {
    const auto table = static_cast<std::uint64_t>(table_bytes / element);
    for (const way w : {way::gather, way::scatter}) {
      const arrays data(w, table, table, {0}, true);
      const std::string what = fmt::format("host memory, {}, {}", name_of(w), in_words(table_bytes));
      const double mapped = seconds(data, "plain kernel", [&] { hpe::bench::by_plain_kernel(0, data.as_movement()); });
      const double staged = seconds(data, choice{method::staged, 4}, {0});
      add_rate(what + ": mapped access", data, mapped);
      add_rate(what + ": staged", data, staged);
      add(what + ": staged, of mapped access", mapped / staged, "x", 3);
    }
  }

  void soft(double table_bytes) {
    const auto table = static_cast<std::uint64_t>(table_bytes / element);
    const unsigned threads = hpe::device_info(0).compute_units;
    // There is no target for tables that fit into a cache, because a launch takes longer than the accesses.
    const double bar = table_bytes > last_cache() ? 1.5 : 0;
    for (const way w : {way::gather, way::scatter}) {
      const arrays data(w, table, table, {0});
      const std::string what = fmt::format("{}, {}, {} threads", name_of(w), in_words(table_bytes), threads);
      methods all = methods_of(
          data,
          {{method::single_pass, 1}, {method::multi_pass, 4}, {method::partitioned, 64}, {method::partitioned, 512}});
      const host_arrays copies(data.as_movement());
      const auto poison = [&] { copies.poison(); };
      const std::vector<timing> times =
          by_turns(data, all.ways,
                   {{poison, [&] { hpe::bench::by_loop(threads, copies.as_movement()); }},
                    {poison, [&] { hpe::bench::by_tbb(threads, copies.as_movement()); }}});
      all.ways.push_back({"plain loop", {}});
      all.ways.push_back({"oneTBB", {}});
      add_rates(what, data, all.ways, times);
      const timing best = fastest(times, all.plans.size()), loop = times[all.plans.size()],
                   tbb = times[all.plans.size() + 1];
      add(what + ": best, of oneTBB", tbb.median / best.median, "x", bar);
      add("  by processor time", tbb.processor / best.processor, "x");
      add(what + ": best, of a plain loop", loop.median / best.median, "x", bar);
      add("  by processor time", loop.processor / best.processor, "x");
    }
  }

  std::vector<result> results;

 private:
  /// Returns the times of hpe's methods `ways`, followed by the times of the references `others`.
  [[nodiscard]] std::vector<timing> by_turns(const arrays& data, const std::vector<named>& ways,
                                             const std::vector<hpe::bench::contender>& others) const {
    std::vector<hpe::bench::contender> all;
    for (const named& way : ways) all.push_back(contender_of(data, way));
    all.insert(all.end(), others.begin(), others.end());
    std::vector<timing> times = hpe::bench::timings_by_turns(given_.repeats, all);
    data.check(ways.back().name);
    return times;
  }
  void add_rates(const std::string& what, const arrays& data, const std::vector<named>& ways,
                 const std::vector<timing>& times) {
    for (std::size_t i = 0; i < ways.size(); ++i) add_rate(what + ": " + ways[i].name, data, times[i].median);
  }
  /// Returns the shortest of the first `count` times.
  [[nodiscard]] static timing fastest(const std::vector<timing>& times, std::size_t count) {
    return *std::min_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(count),
                             [](const timing& a, const timing& b) { return a.median < b.median; });
  }

  const hpe::bench::arguments given_;
};

}  // namespace

int main(int argc, char** argv) {
  double largest = 64;
  bool model = false;
  const auto given =
      hpe::bench::parse(argc, argv, "gather and scatter, compared with Thrust, oneTBB and plain access",
                        {{"--largest", "G", "the largest table in GB, if it fits on the GPU (64; on soft devices 0.5)",
                          hpe::command_line::to_positive(largest)},
                         {"--model", "", "measure only the accuracy of the model", hpe::bench::to_flag(model)}});
  program p(given);
  const hpeDeviceInfo first = hpe::device_info(0);
  if (model) {
    const double all = hpe::bench::on_gpus() ? 0x1p32 : 0x1p28;
    p.results = hpe::bench::accuracy_of_model(given.repeats, std::min(all, largest * 0x1p30));
  } else if (hpe::bench::on_gpus()) {
    hpe::bench::warm_up_gpus();
    const auto fits = [&](double bytes, std::size_t devices) {
      return bytes <= largest * 0x1p30 && room_of(bytes, devices) <= static_cast<double>(first.memory_free);
    };
    for (const double bytes : {0x1p27, 0x1p29, 0x1p31, 0x1p33, 0x1p34, 0x1p35, 0x1p36})
      if (fits(bytes, 1) && hpe::bench::thrust_there()) p.one_gpu(bytes);
    for (const double bytes : {0x1p30, 0x1p33})
      if (fits(bytes, 2) && hpe::device_count() > 1) p.two_gpus(bytes);
    if (hpe::bench::thrust_there()) p.host_memory(std::min(0x1p31, largest * 0x1p30));
  } else {
    for (const double bytes : {0x1p22, 0x1p27, 0x1p29})
      if (bytes <= largest * 0x1p30) p.soft(bytes);
  }
  return hpe::bench::report(
      fmt::format("gather and scatter on {} x {}, {}", hpe::device_count(), first.name, hpe::bench::load_of_machine()),
      p.results, given);
}
