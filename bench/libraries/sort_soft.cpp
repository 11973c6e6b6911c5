#include <fmt/core.h>

#include <algorithm>
#include <boost/sort/block_indirect_sort/block_indirect_sort.hpp>
#include <boost/sort/parallel_stable_sort/parallel_stable_sort.hpp>
#include <functional>
#include <stdexcept>

#include "apps/sort/sorter.h"
#include "bench/libraries/soft_bars.h"
#include "bench/libraries/sort_keys.h"
#include "bench/libraries/sort_methods.h"

namespace hpe::bench {

namespace {

void against(std::vector<result>& results, unsigned repeats, const std::vector<std::uint32_t>& keys,
             const std::string& name, const std::function<void(std::vector<std::uint32_t>&)>& peer) {
  constexpr double bar = 0.9;
  sort::sorter work(sort::element_of<std::uint32_t>(), keys.size());
  const keys_on_devices data(keys, work.where());
  std::vector<std::uint32_t> sorted;
  const auto t = paired_timings(
      repeats, [&] { sorted = keys; }, [&] { peer(sorted); }, [&] { data.reset(); },
      [&] {
        work.run(data.sorted.data());
        synchronize();
      });
  if (!std::equal(sorted.begin(), sorted.end(), data.sorted.begin())) throw std::runtime_error("results differ");
  const double ratio = t.first.median / t.second.median;
  results.push_back({name, ratio, "x", ">= 0.90", ratio >= bar});
  results.push_back({"  by processor time", t.first.processor / t.second.processor, "x", "", true});
}

}  // namespace

std::vector<result> sorts_against_boost(unsigned repeats) {
  const std::vector<std::uint32_t> keys = random_keys(std::size_t{1} << 24);
  const unsigned threads = threads_of_devices();
  const std::string what = fmt::format("sort, {} uint32, {} threads, of Boost's ", keys.size(), threads);
  std::vector<result> results;
  against(results, repeats, keys, what + "parallel_stable_sort",
          [threads](auto& k) { boost::sort::parallel_stable_sort(k.begin(), k.end(), threads); });
  against(results, repeats, keys, what + "block_indirect_sort (not stable)",
          [threads](auto& k) { boost::sort::block_indirect_sort(k.begin(), k.end(), threads); });
  std::vector<int> all;
  for (int d = 0; d < device_count(); ++d) all.push_back(d);
  for (const std::size_t count : {std::size_t{1} << 20, std::size_t{1} << 22})
    add_radix_against_merges(results, repeats, count, all);
  return results;
}

}  // namespace hpe::bench
