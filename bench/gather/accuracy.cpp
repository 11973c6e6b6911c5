#include "bench/gather/accuracy.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "apps/gather/fit.h"

namespace hpe::bench {

namespace {

using namespace hpe::gather;
using order = stopwatch::order;

/// The accuracies of the predictions in one experiment.
class accuracies {
 public:
  void add(const std::string& where, double measured, double predicted) {
    const double accuracy = 1 - std::abs(measured - predicted) / measured;
    points_.push_back({where, accuracy, "", "", true,
                       fmt::format("measured {:.4f} ms, predicted {:.4f}", 1e3 * measured, 1e3 * predicted)});
    sum_ += accuracy;
    ++count_;
    least_ = std::min(least_, accuracy);
  }
  void report(std::vector<result>& results, const std::string& what, double bar) const {
    const double mean = sum_ / count_;
    results.push_back({what + ": mean accuracy", mean, "", fmt::format(">= {:.2f}", bar), mean >= bar});
    results.push_back({what + ": least accuracy", least_, ""});
    for (result point : points_) {
      point.what = "  " + what + ", " + point.what;
      results.push_back(point);
    }
  }

 private:
  double sum_ = 0, least_ = 1;
  int count_ = 0;
  std::vector<result> points_;
};

class experiment {
 public:
  experiment(unsigned repeats, std::size_t largest)
      : repeats_(static_cast<int>(repeats)), largest_(largest), machine_(fitted(0, true, {})), clock_(0, largest) {}

  std::vector<result> all() {
    results_.push_back({"weighted mean of the sequential bandwidth", machine_.mean_sequential() / 1e9, "GB/s"});
    for (const way w : {way::gather, way::scatter}) {
      const std::string name = w == way::gather ? "gather" : "scatter";
      by_size(w, name);
      by_partitions(w, name);
      by_passes(w, name);
      by_choice(w, name);
    }
    return results_;
  }

 private:
  static problem of_size(way w, std::size_t bytes) {
    const std::uint64_t n = bytes / 8;
    return {w, 8, 4, n, n, duplicates::any, out_of_range::skip};
  }
  double measure(const problem& p, const choice& how, const stopwatch::pattern& indices = {}) {
    return clock_.seconds(p, how, indices, repeats_);
  }

  /// Compares predicted with measured times at table sizes between the sizes that the model was fitted to.
  void by_size(way w, const std::string& name) {
    accuracies in_order, uniform;
    for (double mb = 1.4; mb * 0x1p20 <= static_cast<double>(std::min(largest_, std::size_t{1} << 30)); mb *= 2) {
      const problem p = of_size(w, static_cast<std::size_t>(mb * 0x1p20) / 64 * 64);
      const std::string where = fmt::format("{:.1f} MB", mb);
      in_order.add(where, measure(p, {}, {order::sequential}), predict_sequential(machine_, p));
      uniform.add(where, measure(p, {}), predict(machine_, p, {}).total());
    }
    in_order.report(results_, name + ", sequential", 0.87);
    uniform.report(results_, name + ", case I", 0.90);
  }

  void by_partitions(way w, const std::string& name) {
    accuracies all;
    const problem p = of_size(w, std::min(largest_, std::size_t{128} << 20));
    for (std::uint64_t partitions = 4; partitions <= p.table / 16; partitions *= 4)
      all.add(fmt::format("{} partitions", partitions), measure(p, {}, {order::partitioned, partitions}),
              predict(machine_, p, {}, static_cast<double>(partitions)).total());
    all.report(results_, name + ", case II", 0.82);
  }

  void by_passes(way w, const std::string& name) {
    accuracies all;
    const problem p = of_size(w, std::min(largest_, std::size_t{128} << 20));
    for (std::uint32_t passes = 1; passes <= 64; passes *= 2) {
      const choice how{passes == 1 ? method::single_pass : method::multi_pass, passes};
      all.add(fmt::format("{} passes", passes), measure(p, how), predict(machine_, p, how).total());
    }
    all.report(results_, name + ", passes", 0.86);
  }

  /// For each table size, adds the ratio best / chosen: the time of the fastest method, divided by the time of the
  /// method that the model chooses. Then adds the smallest of these ratios.
  void by_choice(way w, const std::string& name) {
    double least = 1;
    for (std::size_t bytes = std::size_t{1} << 22; bytes <= largest_; bytes *= 4) {
      const problem p = of_size(w, bytes);
      const choice chosen = choices(machine_, p).front().how;
      std::vector<choice> all{choice{}, choice{method::multi_pass, 4}, choice{method::partitioned, 64},
                              choice{method::partitioned, 256}};
      const auto is_chosen = [&](const choice& c) { return c.how == chosen.how && c.chunks == chosen.chunks; };
      if (std::ranges::none_of(all, is_chosen)) all.push_back(chosen);
      // Takes each method's fastest time in several sweeps over all methods, because other programs on the machine only
      // add time. In a single sweep, the smallest of several noisy times would understate the time of the best method.
      constexpr int sweeps = 5;
      std::vector<double> times(all.size(), std::numeric_limits<double>::max());
      for (int sweep = 0; sweep < sweeps; ++sweep)
        for (std::size_t i = 0; i < all.size(); ++i) times[i] = std::min(times[i], measure(p, all[i]));
      const double best = *std::ranges::min_element(times);
      const double of_chosen = times[static_cast<std::size_t>(std::ranges::find_if(all, is_chosen) - all.begin())];
      results_.push_back({fmt::format("{}, {} MB: chosen: {}, {} chunks", name, bytes >> 20,
                                      gather::name_of(chosen.how), chosen.chunks),
                          best / of_chosen, "x best"});
      least = std::min(least, best / of_chosen);
    }
    results_.push_back({name + ", chosen method: least", least, "x best", ">= 0.97", least >= 0.97});
  }

  const int repeats_;
  const std::size_t largest_;
  const parameters machine_;
  stopwatch clock_;
  std::vector<result> results_;
};

}  // namespace

std::vector<result> accuracy_of_model(unsigned repeats, double largest) {
  return experiment(repeats, static_cast<std::size_t>(largest)).all();
}

}  // namespace hpe::bench
