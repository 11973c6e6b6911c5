#pragma once

/// The steps of a radix sort that involve all devices together.

#include <cstdint>
#include <optional>
#include <type_traits>
#include <vector>

#include "hpe/hpe.hpp"
#include "kernels/radix_parameters.h"
#include "kernels/sort.h"

namespace hpe::sort {

/// Returns the parameters of a radix sort for elements of a type; nullopt for types without a radix order.
template <class T>
[[nodiscard]] std::optional<kernels::radix_types> radix_types_of() {
  if constexpr (std::is_arithmetic_v<T> && (sizeof(T) == 4 || sizeof(T) == 8)) {
    using kernels::radix_order;
    return kernels::radix_types{sizeof(T), sizeof(T),
                                std::is_floating_point_v<T> ? radix_order::floating
                                : std::is_signed_v<T>       ? radix_order::with_sign
                                                            : radix_order::without_sign};
  } else if constexpr (requires(T pair) { pair.key; }) {
    std::optional<kernels::radix_types> types = radix_types_of<decltype(T::key)>();
    if (types.has_value()) types->element = sizeof(T);
    return types;
  } else {
    return {};
  }
}

/// Moves elements in the memory of several devices to their ranges of the sorted array, in one exchange between all
/// devices. The splitters are exact, so the ranges have the requested lengths for any keys. Equal elements keep their
/// order. A partition can run many times. Only one thread at a time may use it.
class radix_partition {
 public:
  /// The elements of the unsorted array that one device has, and the number of ranges in the device's part of the
  /// sorted array: one for each thread that sorts.
  struct part {
    int device;
    std::uint64_t begin, count;
    std::uint32_t ranges;
  };

  /// `parts` are consecutive parts of the array, in ascending order. Throws hpe::error, for example for more than
  /// most_devices devices or most_ranges ranges.
  radix_partition(const module& kernels, const kernels::radix_types& types, std::vector<part> parts);

  static constexpr std::size_t most_devices = kernels::radix_most_devices,
                               most_ranges = kernels::radix_most_splitters + 1;

  /// Queues the search for splitters. `from`: the elements of all parts.
  void split(const std::byte* from);
  /// Queues the exchange. Call split() with the same elements first. The arrays must not overlap.
  void move(const std::byte* from, std::byte* to);

  /// Returns the index of the first element of range r in a part of `count` elements that is cut into `ranges` ranges.
  [[nodiscard]] static std::uint64_t bound(std::uint64_t count, std::uint32_t r, std::uint32_t ranges) {
    return kernels::radix_bound(count, r, ranges);
  }

 private:
  [[nodiscard]] kernels::radix_part part_of(const part& p, const std::byte* from) const;
  [[nodiscard]] hpeShape shape(const part& p) const;
  [[nodiscard]] std::span<std::byte> all(const std::byte* data) const;

  const kernels::radix_types types_;
  const std::vector<part> parts_;
  std::uint64_t count_ = 0;
  std::uint32_t splitter_count_ = 0;
  std::vector<std::uint32_t> tiles_;  ///< number of tiles of each part
  kernel<kernels::radix_digits_parameters> count_digits_;
  kernel<kernels::radix_choice_parameters> choose_;
  kernel<kernels::radix_classes_parameters> count_classes_, move_;
  kernel<kernels::radix_offsets_parameters> place_;
  array<kernels::radix_splitters> boundaries_, splitters_;  ///< the initial state of a search, and its result
  std::vector<array<std::uint64_t>> counts_;                ///< counts of each part, by digit and splitter
  std::vector<array<std::uint64_t>> offsets_;               ///< target offsets of each part
};

}  // namespace hpe::sort
