// Sorts of random 32-bit keys. One GPU (HPE_DEVICES=cuda:1): against CUB. Several: all of them against the first. Soft
// devices: against Boost.Sort with as many threads. Each run begins with the same keys, copied outside the timed part.

#include <fmt/core.h>

#include <algorithm>
#include <boost/sort/block_indirect_sort/block_indirect_sort.hpp>
#include <boost/sort/parallel_stable_sort/parallel_stable_sort.hpp>
#include <functional>
#include <random>
#include <vector>

#include "apps/sort/sorter.h"
#include "bench/measure.h"
#include "bench/sort_peers.h"

namespace {

using hpe::array;
using hpe::bench::result;

result line(const std::string& what, double value, const std::string& unit, double bar) {
  return {what, value, unit, bar > 0 ? fmt::format(">= {:.2f}", bar) : "", value >= bar};
}

std::vector<std::uint32_t> random_keys(std::size_t count) {
  std::minstd_rand random(1);
  std::vector<std::uint32_t> keys(count);
  for (auto& k : keys) k = static_cast<std::uint32_t>(random()) << 1 ^ static_cast<std::uint32_t>(random() >> 7);
  return keys;
}

/// Keys in device memory that every run begins with, and the array that is sorted.
struct keys_on_devices {
  keys_on_devices(const std::vector<std::uint32_t>& keys, const hpe::placement& where)
      : original(keys.size(), where), sorted(keys.size(), where) {
    hpe::copy(original.data(), keys.data(), bytes());
  }
  [[nodiscard]] std::size_t bytes() const { return original.size() * sizeof(std::uint32_t); }
  void reset() const {
    hpe::copy(sorted.data(), original.data(), bytes());
    hpe::synchronize();
  }
  array<std::uint32_t> original, sorted;
};

double seconds_of(unsigned repeats, const std::vector<std::uint32_t>& keys, const std::vector<int>& devices) {
  hpe::sort::sorter work(hpe::sort::element_of<std::uint32_t>(), keys.size(), devices);
  const keys_on_devices data(keys, work.where());
  const double time = hpe::bench::median_seconds(
      repeats, [&] { data.reset(); },
      [&] {
        work.run(data.sorted.data());
        hpe::synchronize();
      });
  if (!std::is_sorted(data.sorted.begin(), data.sorted.end())) throw std::runtime_error("the result is not sorted");
  return time;
}

double seconds_of_cub(unsigned repeats, const std::vector<std::uint32_t>& keys) {
  const keys_on_devices data(keys, hpe::on_device(0));
  hpe::bench::cub_sort peer(0, keys.size());
  return hpe::bench::median_seconds(
      repeats, [&] { data.reset(); },
      [&] {
        peer.run(data.sorted.data());
        hpe::synchronize();
      });
}

/// All devices against a sort of Boost with as many threads, in turn: time by the clock, and processor time.
void against_boost(std::vector<result>& results, unsigned repeats, const std::vector<std::uint32_t>& keys,
                   const std::string& name, double bar, const std::function<void(std::vector<std::uint32_t>&)>& peer) {
  hpe::sort::sorter work(hpe::sort::element_of<std::uint32_t>(), keys.size());
  const keys_on_devices data(keys, work.where());
  std::vector<std::uint32_t> sorted;
  const auto t = hpe::bench::paired_timings(
      repeats, [&] { sorted = keys; }, [&] { peer(sorted); }, [&] { data.reset(); },
      [&] {
        work.run(data.sorted.data());
        hpe::synchronize();
      });
  if (!std::equal(sorted.begin(), sorted.end(), data.sorted.begin())) throw std::runtime_error("results differ");
  results.push_back(line(name, t.first.median / t.second.median, "x", bar));
  results.push_back(line("  by processor time", t.first.processor / t.second.processor, "x", 0));
}

void against_boost(std::vector<result>& results, unsigned repeats, const std::vector<std::uint32_t>& keys) {
  unsigned threads = 0;
  for (int d = 0; d < hpe::device_count(); ++d) threads += hpe::device_info(d).compute_units;
  constexpr double bar = 0.9;
  const std::string what = fmt::format("{} uint32, {} threads, of Boost's ", keys.size(), threads);
  against_boost(results, repeats, keys, what + "parallel_stable_sort", bar,
                [threads](auto& k) { boost::sort::parallel_stable_sort(k.begin(), k.end(), threads); });
  against_boost(results, repeats, keys, what + "block_indirect_sort (not stable)", bar,
                [threads](auto& k) { boost::sort::block_indirect_sort(k.begin(), k.end(), threads); });
}

}  // namespace

int main(int argc, char** argv) {
  const auto a = hpe::bench::parse(argc, argv, "sorts of 32-bit keys against CUB, Boost.Sort and one device");
  const int devices = hpe::device_count();
  const hpeDeviceInfo first = hpe::device_info(0);
  const bool soft = first.kind == HPE_DEVICE_SOFT;
  std::vector<result> results;
  const std::vector<std::uint32_t> keys = random_keys(std::size_t{1} << (soft ? 24 : 28));
  const std::string what = fmt::format("{} uint32", keys.size());
  const double all = seconds_of(a.repeats, keys, {});
  results.push_back(
      line(what + fmt::format(", {} devices", devices), 1e-6 * static_cast<double>(keys.size()) / all, "M/s", 0));
  if (soft) {
    against_boost(results, a.repeats, keys);
  } else if (devices == 1) {
    constexpr double bar = 0.95;
    if (hpe::bench::cub_there()) results.push_back(line(what, seconds_of_cub(a.repeats, keys) / all, "x CUB", bar));
  } else {
    results.push_back(line(what + fmt::format(", {} GPUs", devices), seconds_of(a.repeats, keys, {0}) / all, "x one",
                           0.75 * devices));
  }
  hpe::bench::print(fmt::format("sort on {} x {}, {}", devices, first.name, hpe::bench::load_of_machine()), results,
                    a.json);
}
