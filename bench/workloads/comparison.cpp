#include "bench/workloads/comparison.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>

namespace hpe::bench {

namespace {

void check_same(const workload& what, const std::string& version, const std::vector<double>& got,
                const std::vector<double>& wanted) {
  if (got.empty() || wanted.empty()) return;  // some workloads and peers return no results to compare
  double most = 0, size = 0;
  const bool comparable = got.size() == wanted.size();
  for (std::size_t i = 0; comparable && i < got.size(); ++i) {
    most = std::max(most, std::abs(got[i] - wanted[i]));
    size = std::max(size, std::abs(wanted[i]));
  }
  if (!comparable || !(most <= what.tolerance * size))
    throw std::runtime_error(
        fmt::format("{}: {} and hpe on one device differ by {} of {}", what.name, version, most, size));
}

timing time_of(program& p, unsigned repeats) {
  return timed(
      repeats, [&] { p.reset(); }, [&] { p.run(); });
}

/// Times hpe and another version in turn.
pair_of_timings times_of(program& ours, program& theirs, unsigned repeats) {
  return paired_timings(
      repeats, [&] { ours.reset(); }, [&] { ours.run(); }, [&] { theirs.reset(); }, [&] { theirs.run(); });
}

class measurement {
 public:
  measurement(const workload& what, unsigned repeats) : what_(what), repeats_(repeats) {
    const std::string title = what.name + ", " + what.size;
    all_.speed_up = {title, {"devices"}, {"speed-up over one device"}, {}};
    all_.exchange = {title, {"devices"}, {"share of time in exchange, %"}, {}};
  }

  comparison all() {
    for (const int devices : {1, 2, 4})
      if (devices <= device_count()) on(devices);
    return std::move(all_);
  }

 private:
  /// Prints to standard error which version runs next, so that a user sees which version is slow.
  void tell(int devices, const std::string& version) {
    fmt::print(stderr, "{:6.1f} s: {}, {} device{}, {}\n", now() - began_, what_.name, devices, devices == 1 ? "" : "s",
               version);
  }

  void on(int devices) {
    tell(devices, "hpe");
    const auto ours = what_.through_hpe(devices);
    tell(devices, "hpe: begins");
    const double alone = time_of(*ours, repeats_).median;
    if (devices == 1) {
      one_ = alone;
      expected_ = ours->probe();
    } else {
      check_same(what_, fmt::format("hpe on {} devices", devices), ours->probe(), expected_);
    }
    const std::string where = fmt::format("{}, {} device{}: ", what_.name, devices, devices == 1 ? "" : "s");
    row(where + "time through hpe", 1e3 * alone, "ms");
    point(all_.speed_up, "hpe", devices, one_ / alone);
    if (devices > 1) row(where + "faster than one", one_ / alone, "x");
    if (devices > 1) by_hand_on(devices, *ours, where);
    if (devices == device_count() || devices == 4) against_peer(devices, *ours, where);
  }

  void by_hand_on(int devices, program& ours, const std::string& where) {
    tell(devices, "by hand");
    const auto theirs = what_.written_by_hand(devices);
    if (theirs == nullptr) return;
    double best = 0, best_by_processor = 0;
    for (const copy_scheme scheme : all_schemes) {
      if (!theirs->use(scheme, false)) continue;
      tell(devices, fmt::format("by hand, {}: begins", name_of(scheme)));
      const pair_of_timings t = times_of(ours, *theirs, repeats_);
      check_same(what_, fmt::format("by hand, {}, on {} devices", name_of(scheme), devices), theirs->probe(),
                 expected_);
      const double faster = t.second.median / t.first.median;
      row(where + "faster than by hand, " + name_of(scheme), faster, "x");
      point(all_.speed_up, name_of(scheme), devices, one_ / t.second.median);
      if (best == 0 || faster < best) {
        best = faster;
        best_by_processor = t.second.processor / t.first.processor;
      }
      share_of_exchange(devices, scheme, *theirs, where);
    }
    if (best == 0) return;
    constexpr double bar = 0.97;
    const bool soft = !on_gpus();
    all_.rows.push_back({where + "of the best by hand", best, "x", soft ? "" : ">= 0.97", best >= bar});
    if (soft) row(where + "of the best by hand, by processor time", best_by_processor, "x");
  }

  /// Adds the share of its time that the hand-written program spends in exchanges: the share that it saves if it copies
  /// nothing. Runs with and without copies alternate.
  void share_of_exchange(int devices, copy_scheme scheme, hand_written& theirs, const std::string& where) {
    std::vector<double> shares;
    for (unsigned i = 0; i < repeats_; ++i) {
      double seconds[2];
      for (const bool left_out : {false, true}) {
        if (!theirs.use(scheme, left_out)) return;
        theirs.reset();
        const double begin = now();
        theirs.run();
        seconds[left_out ? 1 : 0] = now() - begin;
      }
      shares.push_back(std::max(0.0, 100 * (1 - seconds[1] / seconds[0])));
    }
    std::sort(shares.begin(), shares.end());
    const double share = shares[shares.size() / 2];
    row(where + "time in exchanges by hand, " + name_of(scheme), share, "%");
    point(all_.exchange, name_of(scheme), devices, share);
  }

  void against_peer(int devices, program& ours, const std::string& where) {
    if (what_.strongest_peer == nullptr || on_gpus()) return;
    unsigned threads = 0;
    for (int d = 0; d < devices; ++d) threads += device_info(d).compute_units;
    const auto peer = what_.strongest_peer(threads);
    if (peer == nullptr) return;
    const pair_of_timings t = times_of(ours, *peer, repeats_);
    check_same(what_, what_.peer, peer->probe(), expected_);
    row(fmt::format("{}speed of {}, {} threads", where, what_.peer, threads), t.second.median / t.first.median, "x");
    row(fmt::format("{}speed of {}, by processor time", where, what_.peer), t.second.processor / t.first.processor,
        "x");
  }

  void row(const std::string& text, double value, const std::string& unit) {
    all_.rows.push_back({text, value, unit, "", true});
  }

  static void point(chart& where, const std::string& name, int devices, double value) {
    auto found = std::find_if(where.lines.begin(), where.lines.end(), [&](const line& l) { return l.name == name; });
    if (found == where.lines.end()) found = where.lines.insert(found, line{name, {}});
    found->points.emplace_back(devices, value);
  }

  const workload& what_;
  const unsigned repeats_;
  const double began_ = now();
  comparison all_;
  double one_ = 0;
  std::vector<double> expected_;
};

}  // namespace

comparison compare(const workload& what, unsigned repeats) { return measurement(what, repeats).all(); }

}  // namespace hpe::bench
