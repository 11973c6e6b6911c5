#include <fmt/core.h>

#include <algorithm>
#include <boost/sort/block_indirect_sort/block_indirect_sort.hpp>
#include <boost/sort/parallel_stable_sort/parallel_stable_sort.hpp>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <type_traits>

#include "apps/sort/sorter.h"
#include "bench/libraries/soft_bars.h"
#include "bench/libraries/sort_keys.h"

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

/// Radix beside merges, for one type of keys. Seconds of a run are those of the devices; the input is copied before.
template <class T>
void radix_against_merges(std::vector<result>& results, unsigned repeats, std::size_t count) {
  const std::vector<std::uint32_t> random = random_keys(2 * count);
  std::vector<T> keys(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t bits = std::uint64_t{random[2 * i]} << 32 | random[2 * i + 1];
    if constexpr (std::is_arithmetic_v<T>)
      keys[i] = static_cast<T>(bits);
    else
      keys[i] = {static_cast<decltype(T::key)>(bits), static_cast<decltype(T::value)>(i)};
  }
  sort::sorter by_merges(sort::element_of<T>(), count, {}, sort::method::merge);
  sort::sorter by_radix(sort::element_of<T>(), count, {}, sort::method::radix);
  const array<T> merged(count, by_merges.where()), placed(count, by_radix.where());
  const auto put = [&](const array<T>& data) {
    copy(data.data(), keys.data(), count * sizeof(T));
    synchronize();
  };
  const auto t = paired_timings(
      repeats, [&] { put(merged); },
      [&] {
        by_merges.run(merged.data());
        synchronize();
      },
      [&] { put(placed); },
      [&] {
        by_radix.run(placed.data());
        synchronize();
      });
  if (std::memcmp(merged.data(), placed.data(), count * sizeof(T)) != 0) throw std::runtime_error("results differ");
  results.push_back({fmt::format("sort, {} {}: by radix, of by merges", count, sort::name_of_type<T>::value),
                     t.first.median / t.second.median, "x", ">= 1.00", t.first.median >= t.second.median});
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
  for (const std::size_t count : {std::size_t{1} << 20, std::size_t{1} << 22}) {
    radix_against_merges<std::uint32_t>(results, repeats, count);
    radix_against_merges<std::uint64_t>(results, repeats, count);
    radix_against_merges<double>(results, repeats, count);
    radix_against_merges<kernels::sort_pair<std::uint32_t, std::uint32_t>>(results, repeats, count);
    radix_against_merges<kernels::sort_pair<std::uint64_t, std::uint64_t>>(results, repeats, count);
  }
  return results;
}

}  // namespace hpe::bench
