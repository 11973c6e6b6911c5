#include "bench/libraries/sort_methods.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <type_traits>

#include "apps/sort/sorter.h"
#include "bench/common/devices.h"
#include "bench/libraries/sort_keys.h"

namespace hpe::bench {

namespace {

/// Compares radix sort with merge sort for keys of type T and for key-value pairs. The input is copied to the devices
/// before the timed part.
template <class T>
void radix_against_merges(std::vector<result>& results, unsigned repeats, std::size_t count,
                          const std::vector<int>& devices) {
  const std::vector<std::uint32_t> random = random_keys(2 * count);
  std::vector<T> keys(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t bits = std::uint64_t{random[2 * i]} << 32 | random[2 * i + 1];
    if constexpr (std::is_arithmetic_v<T>)
      keys[i] = static_cast<T>(bits);
    else
      keys[i] = {static_cast<decltype(T::key)>(bits), static_cast<decltype(T::value)>(i)};
  }
  sort::sorter by_merges(sort::element_of<T>(), count, devices, sort::method::merge);
  sort::sorter by_radix(sort::element_of<T>(), count, devices, sort::method::radix);
  const array<T> merged(count, by_merges.where()), placed(count, by_radix.where());
  const auto put = [&](const array<T>& data) {
    copy(data.data(), keys.data(), count * sizeof(T));
    synchronize();
  };
  warm_up_gpus();
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
  const std::string what = fmt::format("sort, {} {}, {} device{}", count, sort::name_of_type<T>::value, devices.size(),
                                       devices.size() == 1 ? "" : "s");
  const double merges = t.first.median, radix = t.second.median;
  results.push_back({what + ": speed by radix / speed by merges", merges / radix, "x"});
  const sort::method chosen = sort::sorter(sort::element_of<T>(), count, devices).how();
  const double speed = std::min(merges, radix) / (chosen == sort::method::radix ? radix : merges);
  constexpr double bar = 0.97;
  results.push_back({what + ": " + sort::name_of(chosen) + " is chosen: its speed / speed of the faster", speed, "x",
                     fmt::format(">= {}", bar), speed >= bar});
}

}  // namespace

void add_radix_against_merges(std::vector<result>& results, unsigned repeats, std::size_t count,
                              const std::vector<int>& devices) {
  // With either method, one GPU sorts keys without values by CUB.
  if (devices.size() > 1 || !on_gpus()) {
    radix_against_merges<std::uint32_t>(results, repeats, count, devices);
    radix_against_merges<std::uint64_t>(results, repeats, count, devices);
    radix_against_merges<double>(results, repeats, count, devices);
  }
  radix_against_merges<kernels::sort_pair<std::uint32_t, std::uint32_t>>(results, repeats, count, devices);
  radix_against_merges<kernels::sort_pair<std::uint64_t, std::uint64_t>>(results, repeats, count, devices);
}

}  // namespace hpe::bench
