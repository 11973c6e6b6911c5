#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "apps/sort/local_sort.h"
#include "apps/sort/radix.h"
#include "apps/sort/radix_passes.h"
#include "apps/sort/repeated_sort.h"
#include "hpe/hpe.hpp"
#include "kernels/sort.h"

namespace hpe::sort {

/// A type and an order with the kernels sort_local_NAME (soft devices) and sort_merge_NAME: hpe's own kernels
/// (ascending), or the kernels of a program's module.
struct element {
  std::string name;
  std::size_t size;
  std::string module;                              ///< empty: hpe's own
  const local_sort* on_gpus = nullptr;             ///< a program's own sort for GPUs; null: hpe's
  std::optional<kernels::radix_types> radix = {};  ///< nullopt: the order is not a radix order
};

enum class method {
  automatic,  ///< radix for many elements that have a radix order, on GPUs only if they are pairs; else merge
  merge,      ///< each device sorts its part, then sorted parts are merged
  radix       ///< elements move to their final devices, and are sorted by digits
};
[[nodiscard]] const char* name_of(method how);

template <class T>
struct name_of_type;
#define HPE_SORT_PAIR(K, V) kernels::sort_pair<K, V>
#define HPE_SORT(text, ...)                     \
  template <>                                   \
  struct name_of_type<__VA_ARGS__> {            \
    static constexpr const char* value = #text; \
  };
#include "kernels/sort.def"
#undef HPE_SORT
#undef HPE_SORT_PAIR

template <class T>
[[nodiscard]] element element_of() {
  return {name_of_type<T>::value, sizeof(T), "", nullptr, radix_types_of<T>()};
}

/// Returns the path of libhpe-sort-kernels.so, in the folder of libhpe.so. Throws hpe::error if the file does not
/// exist.
[[nodiscard]] std::string own_module();

/// Stable sorts of arrays of one length by several devices, by one of two methods.
///
/// Merge: each device sorts its part; then groups of parts are merged with other groups (S. Tanasic et al., "Comparison
/// based sorting for systems with multiple GPUs", GPGPU-6, 2013), up to four at a time, so that keys of up to four
/// devices cross a link once. A device merges the elements that end up in its own part. This device finds the pivots by
/// reading single elements of all groups through the shared pointer, and reads the elements to merge in place.
/// Therefore, devices do not swap data before a merge, and any number of devices is possible.
///
/// Radix: keys cross a link once, even if many keys are equal. Soft devices search for the keys at the bounds of their
/// parts of the sorted array, by counts of digits; then they move all elements to their final parts, and sort the parts
/// by digits (radix_partition). Several GPUs sort by digits from the beginning, and move the elements in one of the
/// passes (radix_passes); one GPU sorts pairs in the same way, and keys with CUB.
///
/// A sorter can run many times. It owns a second array, and a third array if GPUs merge keys and the local sorts are
/// not in place. Only one thread at a time may use a sorter.
class sorter {
 public:
  /// Uses all devices if `devices` is empty. Throws hpe::error if there are no kernels for the element or the method,
  /// or a device does not exist.
  sorter(const element& what, std::uint64_t count, std::vector<int> devices = {}, method wished = method::automatic);

  /// Queues the sort of `count` elements and returns. Like a launch, the sort waits for earlier work on the data.
  /// Throws hpe::error.
  void run(void* data);

  struct step {
    std::string name;
    std::function<void()> queue;  ///< valid while the sorter exists
  };
  /// Returns the steps of run(). With merges: the sorts of the parts, and each round. With radix: the search for
  /// splitters, the exchange, and the local sorts.
  [[nodiscard]] std::vector<step> steps(void* data);

  /// Returns the chosen method.
  [[nodiscard]] method how() const { return how_; }

  /// Returns the best placement of the data.
  [[nodiscard]] placement where() const;

  /// Describes the chosen method in a sentence.
  [[nodiscard]] std::string explain() const;

 private:
  /// Returns the index of the first element of a part; the number of all elements if `part` is the number of devices.
  [[nodiscard]] std::uint64_t cut(std::size_t part) const;
  [[nodiscard]] std::vector<step> merge_steps(std::byte* data);
  [[nodiscard]] std::vector<step> radix_steps(std::byte* data);
  /// Sorts each device's part. The radix sort on soft devices also overwrites `from`.
  void sort_parts(std::byte* from, std::byte* to);
  void sort_ranges(std::size_t device, std::byte* from, std::byte* to);
  /// Merges sorted groups, each of parts_in_group parts: every `groups` groups become one group.
  void merge_round(const std::byte* from, std::byte* to, std::size_t parts_in_group, std::size_t groups);
  void merge(const std::byte* from, std::byte* to, std::size_t device, const std::vector<std::uint64_t>& cuts);
  [[nodiscard]] std::span<std::byte> part_of(const std::byte* data, std::uint64_t from, std::uint64_t to) const;

  /// Returns, for the method `radix`, the number of ranges of the sorted array that a device sorts at a time.
  [[nodiscard]] std::uint32_t ranges(std::size_t device) const;

  const element what_;
  const std::uint64_t count_;
  std::vector<int> devices_;
  const bool soft_;
  const method how_;
  std::vector<std::uint32_t> units_;  ///< compute units of each device
  module module_;
  kernel<kernels::sort_merge<std::byte>> merge_;
  kernel<kernels::sort_merge_four<std::byte>> merge_four_;
  std::optional<radix_partition> exchange_;  ///< radix, for more than one range on soft devices
  std::optional<radix_passes> passes_;       ///< radix, for several GPUs, or for pairs
  hpeKernel local_ = nullptr;                ///< soft devices only: sort_local_NAME or radix_sort_ranges
  std::vector<repeated_sort> on_gpus_;       ///< GPUs: the local sort of each device
  array<std::byte> other_;                   ///< rounds of merges write alternately to this array and to the data
  std::vector<array<std::byte>> scratch_;    ///< GPUs: scratch memory for the local sort of each device
};

}  // namespace hpe::sort
