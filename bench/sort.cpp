// Sorts of random 32-bit keys. One GPU (HPE_DEVICES=cuda:1): against CUB. Several: all of them against the first. Soft
// devices: against Boost.Sort with as many threads. Each run begins with the same keys, copied outside the timed part.

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "apps/sort/sorter.h"
#include "bench/measure.h"
#include "bench/soft_bars.h"
#include "bench/sort_keys.h"
#include "bench/sort_peers.h"

namespace {

using hpe::bench::keys_on_devices;
using hpe::bench::result;

result line(const std::string& what, double value, const std::string& unit, double bar) {
  return {what, value, unit, bar > 0 ? fmt::format(">= {:.2f}", bar) : "", value >= bar};
}

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

}  // namespace

int main(int argc, char** argv) {
  const auto a = hpe::bench::parse(argc, argv, "sorts of 32-bit keys against CUB, Boost.Sort and one device");
  const int devices = hpe::device_count();
  const hpeDeviceInfo first = hpe::device_info(0);
  std::vector<result> results;
  const auto finish = [&] {
    hpe::bench::print(fmt::format("sort on {} x {}, {}", devices, first.name, hpe::bench::load_of_machine()), results,
                      a.json);
  };
  if (first.kind == HPE_DEVICE_SOFT) {
    results = hpe::bench::sorts_against_boost(a.repeats);
    finish();
    return 0;
  }
  const std::vector<std::uint32_t> keys = hpe::bench::random_keys(std::size_t{1} << 28);
  const std::string what = fmt::format("{} uint32", keys.size());
  const double all = seconds_of(a.repeats, keys, {});
  results.push_back(
      line(what + fmt::format(", {} devices", devices), 1e-6 * static_cast<double>(keys.size()) / all, "M/s", 0));
  if (devices == 1) {
    constexpr double bar = 0.95;
    if (hpe::bench::cub_there()) results.push_back(line(what, seconds_of_cub(a.repeats, keys) / all, "x CUB", bar));
  } else {
    results.push_back(line(what + fmt::format(", {} GPUs", devices), seconds_of(a.repeats, keys, {0}) / all, "x one",
                           0.75 * devices));
  }
  finish();
}
