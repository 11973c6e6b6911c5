// Sorts of random 32-bit keys on GPUs or soft devices. One GPU is compared with CUB, and two, four and all GPUs are
// compared with one GPU. The time of each step of a sort, and the time of merges alone, are measured too. Soft devices
// are compared with Boost.Sort on the same number of threads. Each run sorts the same keys, which are copied to the
// devices before the timed part.

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "apps/sort/sorter.h"
#include "bench/common/devices.h"
#include "bench/common/measure.h"
#include "bench/libraries/soft_bars.h"
#include "bench/libraries/sort_keys.h"
#include "bench/libraries/sort_methods.h"
#include "bench/libraries/sort_peers.h"

namespace {

using hpe::bench::keys_on_devices;
using hpe::bench::result;
using hpe::sort::method;

result line(const std::string& what, double value, const std::string& unit, double bar) {
  return {what, value, unit, bar > 0 ? fmt::format(">= {:.2f}", bar) : "", value >= bar};
}

/// The seconds of a whole sort, and of each of its steps until all devices have finished the step.
struct times {
  double all;
  std::vector<std::pair<std::string, double>> steps;
};

times times_of(unsigned repeats, const std::vector<std::uint32_t>& keys, const std::vector<int>& devices,
               method how = method::automatic) {
  hpe::sort::sorter work(hpe::sort::element_of<std::uint32_t>(), keys.size(), devices, how);
  const keys_on_devices data(keys, work.where());
  hpe::bench::warm_up_gpus();  // GPUs were idle for seconds, while the host drew random numbers or checked a result
  times result{};
  result.all = hpe::bench::median_seconds(
      repeats, [&] { data.reset(); },
      [&] {
        work.run(data.sorted.data());
        hpe::synchronize();
      });
  if (!std::is_sorted(data.sorted.begin(), data.sorted.end())) throw std::runtime_error("the result is not sorted");
  const auto steps = work.steps(data.sorted.data());
  std::vector<std::vector<double>> samples(steps.size());
  for (unsigned i = 0; i <= repeats; ++i) {
    data.reset();
    for (std::size_t s = 0; s < steps.size(); ++s) {
      const double begin = hpe::bench::now();
      steps[s].queue();
      hpe::synchronize();
      if (i > 0) samples[s].push_back(hpe::bench::now() - begin);  // the first run warms up and is not counted
    }
  }
  for (std::size_t s = 0; s < steps.size(); ++s) {
    std::sort(samples[s].begin(), samples[s].end());
    result.steps.emplace_back(steps[s].name, samples[s][repeats / 2]);
  }
  return result;
}

void add_steps(std::vector<result>& results, const std::string& where, const times& t) {
  results.push_back(line(where + ": whole", 1e3 * t.all, "ms", 0));
  for (const auto& [name, seconds] : t.steps)
    results.push_back(line(fmt::format("{}: {}", where, name), 1e3 * seconds, "ms", 0));
}

double seconds_of_cub(unsigned repeats, const std::vector<std::uint32_t>& keys) {
  const keys_on_devices data(keys, hpe::on_device(0));
  hpe::bench::cub_sort peer(0, keys.size());
  hpe::bench::warm_up_gpus();
  return hpe::bench::median_seconds(
      repeats, [&] { data.reset(); },
      [&] {
        peer.run(data.sorted.data());
        hpe::synchronize();
      });
}

/// Times merges alone and returns the median in seconds. Each of the first `mergers` GPUs merges two sorted sequences
/// of `side` keys: one in its own memory, and one in the memory of GPU d + `away`, where d is the merging GPU.
double seconds_of_merges(unsigned repeats, std::uint64_t side, int mergers, int away) {
  using parameters = hpe::kernels::sort_merge<std::uint32_t>;
  const hpe::kernel<parameters> merge(hpe::module(hpe::sort::own_module()), "sort_merge_u32");
  std::vector<hpe::array<std::uint32_t>> left, right, output;
  for (int d = 0; d < mergers; ++d) {
    left.emplace_back(side, hpe::on_device(d));
    right.emplace_back(side, hpe::on_device((d + away) % hpe::device_count()));
    output.emplace_back(2 * side, hpe::on_device(d));
    std::vector<std::uint32_t> keys = hpe::bench::random_keys(side);
    std::sort(keys.begin(), keys.end());
    hpe::copy(left.back().data(), keys.data(), side * sizeof(std::uint32_t));
    hpe::copy(right.back().data(), keys.data(), side * sizeof(std::uint32_t));
  }
  // All GPUs of the machine are assumed to be of the same model.
  const std::uint32_t blocks = hpe::kernels::merge_blocks(2 * side, hpe::device_info(0).compute_units);
  return hpe::bench::median_seconds(
      repeats, [] { hpe::synchronize(); },
      [&] {
        for (std::size_t d = 0; d < left.size(); ++d) {
          const parameters p{left[d].data(), right[d].data(), side, side, output[d].data(), 0, 2 * side};
          hpe::launch_on(static_cast<int>(d), merge, {{blocks, 1, 1}, {hpe::kernels::merge_threads, 1, 1}}, p,
                         hpe::in(left[d]), hpe::in(right[d]), hpe::out(output[d]));
        }
        hpe::synchronize();
      });
}

void add_merges(std::vector<result>& results, unsigned repeats) {
  constexpr std::uint64_t side = std::uint64_t{1} << 26;
  const std::string what = fmt::format("merge of 2 x {} keys: ", side);
  results.push_back(line(what + "both on the GPU", 1e3 * seconds_of_merges(repeats, side, 1, 0), "ms", 0));
  results.push_back(line(what + "one on a peer", 1e3 * seconds_of_merges(repeats, side, 1, 1), "ms", 0));
  results.push_back(line(what + "one on a peer, by both", 1e3 * seconds_of_merges(repeats, side, 2, 1), "ms", 0));
}

/// Sorts 2^28 keys. Compares one GPU with CUB, and two, four and all GPUs with one GPU. Adds the times of the steps of
/// both methods.
void add_keys(std::vector<result>& results, unsigned repeats) {
  const std::vector<std::uint32_t> keys = hpe::bench::random_keys(std::size_t{1} << 28);
  const std::string what = fmt::format("{} uint32", keys.size());
  const times one = times_of(repeats, keys, {0});
  results.push_back(line(what, 1e-6 * static_cast<double>(keys.size()) / one.all, "M/s", 0));
  constexpr double bar = 0.95;
  if (hpe::bench::cub_there()) results.push_back(line(what, seconds_of_cub(repeats, keys) / one.all, "x CUB", bar));
  std::vector<int> list{0};
  const int devices = hpe::device_count();
  for (int d = 1; d < devices; ++d) {
    list.push_back(d);
    if (list.size() != 2 && list.size() != 4 && d != devices - 1) continue;
    const std::string where = fmt::format("{}, {} GPUs", what, list.size());
    const times chosen = times_of(repeats, keys, list), merged = times_of(repeats, keys, list, method::merge),
                by_radix = times_of(repeats, keys, list, method::radix);
    results.push_back(line(where, one.all / chosen.all, "x one", list.size() == 2 ? 1.6 : 0.75 * double(list.size())));
    results.push_back(line(where + ", by merges", one.all / merged.all, "x one", 0));
    add_steps(results, where + ", by merges", merged);
    results.push_back(line(where + ", by radix", one.all / by_radix.all, "x one", 0));
    add_steps(results, where + ", by radix", by_radix);
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::string only;
  const auto a = hpe::bench::parse(
      argc, argv, "sorts of 32-bit keys, compared with CUB, Boost.Sort and one device",
      {{"--only", "PART", "on GPUs: keys, methods or merges; default: all of them", hpe::bench::to_text(only)}});
  const auto wanted = [&](const char* part) { return only.empty() || only == part; };
  const int devices = hpe::device_count();
  const hpeDeviceInfo first = hpe::device_info(0);
  std::vector<result> results;
  const auto finish = [&] {
    return hpe::bench::report(fmt::format("sort on {} x {}, {}", devices, first.name, hpe::bench::load_of_machine()),
                              results, a);
  };
  if (first.kind == HPE_DEVICE_SOFT) {
    results = hpe::bench::sorts_against_boost(a.repeats);
    return finish();
  }
  if (wanted("keys")) add_keys(results, a.repeats);
  std::vector<int> all;
  for (int d = 0; d < devices; ++d) all.push_back(d);
  for (const std::size_t count : {std::size_t{1} << 22, std::size_t{1} << 24, std::size_t{1} << 26}) {
    if (!wanted("methods")) break;
    hpe::bench::add_radix_against_merges(results, a.repeats, count, {0});
    if (devices > 1) hpe::bench::add_radix_against_merges(results, a.repeats, count, all);
  }
  if (devices > 1 && wanted("merges")) add_merges(results, a.repeats);
  return finish();
}
