#pragma once

/// Sorting by radix over several devices, as far as all of them take part.

#include <cstdint>
#include <optional>
#include <type_traits>
#include <vector>

#include "hpe/hpe.hpp"
#include "kernels/radix.h"
#include "kernels/sort.h"

namespace hpe::sort {

/// How elements of a type are sorted by radix; nothing for types without a radix order.
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

/// Moves elements in the memory of several devices to the ranges of the sorted array that they will be in: one exchange
/// of all with all. The splitters are exact, so ranges have the wished lengths whatever the keys are. Equal elements
/// keep their order. Made once and run often. One thread at a time.
class radix_partition {
 public:
  /// One device's elements, and how many ranges its part of the sorted array has: one for each thread that sorts.
  struct part {
    int device;
    std::uint64_t begin, count;
    std::uint32_t ranges;
  };

  /// Parts are in ascending order and without gaps. Throws hpe::error, also if there are more devices or ranges than
  /// most_devices and most_ranges.
  radix_partition(const module& kernels, const kernels::radix_types& types, std::vector<part> parts);

  static constexpr std::size_t most_devices = kernels::radix_most_devices,
                               most_ranges = kernels::radix_most_splitters + 1;

  /// Queues the search for splitters. `from`: the elements of all parts.
  void split(const std::byte* from);
  /// Queues the exchange, after split() of the same elements. The arrays do not overlap.
  void move(const std::byte* from, std::byte* to);

  /// Where range r of a part of so many elements begins, from the beginning of the part.
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
  std::vector<std::uint32_t> tiles_;  ///< of each part
  kernel<kernels::radix_digits_parameters> count_digits_;
  kernel<kernels::radix_choice_parameters> choose_;
  kernel<kernels::radix_classes_parameters> count_classes_, move_;
  kernel<kernels::radix_offsets_parameters> place_;
  array<kernels::radix_splitters> boundaries_, splitters_;  ///< as a search begins, and what it finds
  std::vector<array<std::uint64_t>> counts_;                ///< of each part: for each digit and splitter
  std::vector<array<std::uint64_t>> offsets_;               ///< of each part
};

}  // namespace hpe::sort
