// Sorts of random 32-bit keys. One GPU (HPE_DEVICES=cuda:1): against CUB. Several: all of them against the first. Soft
// devices: against Boost.Sort with as many threads. Each run begins with the same keys, copied outside the timed part.

#include <fmt/core.h>

#include <algorithm>
#include <boost/sort/parallel_stable_sort/parallel_stable_sort.hpp>
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

double seconds_of_boost(unsigned repeats, const std::vector<std::uint32_t>& keys, unsigned threads) {
  std::vector<std::uint32_t> sorted(keys.size());
  return hpe::bench::median_seconds(
      repeats, [&] { sorted = keys; },
      [&] { boost::sort::parallel_stable_sort(sorted.begin(), sorted.end(), threads); });
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
    unsigned threads = 0;
    for (int d = 0; d < devices; ++d) threads += hpe::device_info(d).compute_units;
    constexpr double bar = 0.9;
    results.push_back(line(what + fmt::format(", {} threads", threads),
                           seconds_of_boost(a.repeats, keys, threads) / all, "x Boost", bar));
  } else if (devices == 1) {
    constexpr double bar = 0.95;
    if (hpe::bench::cub_there()) results.push_back(line(what, seconds_of_cub(a.repeats, keys) / all, "x CUB", bar));
  } else {
    results.push_back(line(what + fmt::format(", {} GPUs", devices), seconds_of(a.repeats, keys, {0}) / all, "x one",
                           0.75 * devices));
  }
  hpe::bench::print(fmt::format("sort on {} x {}", devices, first.name), results, a.json);
}
