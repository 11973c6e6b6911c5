#include "bench/libraries/sort_methods.h"

#include <fmt/core.h>

#include <cstring>
#include <stdexcept>
#include <type_traits>

#include "apps/sort/sorter.h"
#include "bench/libraries/sort_keys.h"

namespace hpe::bench {

namespace {

/// Radix beside merges, for one type of keys. Seconds of a run are those of the devices; the input is copied before.
template <class T>
void radix_against_merges(std::vector<result>& results, unsigned repeats, std::size_t count, bool has_bar) {
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
                     t.first.median / t.second.median, "x", has_bar ? ">= 1.00" : "",
                     !has_bar || t.first.median >= t.second.median});
}

}  // namespace

void add_radix_against_merges(std::vector<result>& results, unsigned repeats, std::size_t count, bool has_bar) {
  radix_against_merges<std::uint32_t>(results, repeats, count, has_bar);
  radix_against_merges<std::uint64_t>(results, repeats, count, has_bar);
  radix_against_merges<double>(results, repeats, count, has_bar);
  radix_against_merges<kernels::sort_pair<std::uint32_t, std::uint32_t>>(results, repeats, count, has_bar);
  radix_against_merges<kernels::sort_pair<std::uint64_t, std::uint64_t>>(results, repeats, count, has_bar);
}

}  // namespace hpe::bench
