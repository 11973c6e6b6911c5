#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "apps/sort/local_sort.h"
#include "apps/sort/repeated_sort.h"
#include "hpe/hpe.hpp"
#include "kernels/sort.h"

namespace hpe::sort {

/// A type and an order for which there are kernels sort_local_NAME (soft devices) and sort_merge_NAME: those of hpe
/// (ascending), or of a program's own module.
struct element {
  std::string name;
  std::size_t size;
  std::string module;                   ///< empty: hpe's own
  const local_sort* on_gpus = nullptr;  ///< a program's own, for GPUs; null: hpe's
};

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
  return {name_of_type<T>::value, sizeof(T), "", nullptr};
}

/// The path of libhpe-sort-kernels.so, which lies beside libhpe.so. Throws hpe::error if it does not.
[[nodiscard]] std::string own_module();

/// Stable sorts of arrays of one length by several devices: each sorts its part, then parts are merged, groups of parts
/// with groups (S. Tanasic et al., "Comparison based sorting for systems with multiple GPUs", GPGPU-6, 2013), but up to
/// four at a time, so that keys of up to four devices cross a link once. A device merges what ends up in its own part;
/// it finds the pivots by reading single elements of all sides through the shared pointer, and reads what it merges in
/// the same way. So nothing is swapped beforehand, and any number of devices is right. Made once and run often: it
/// holds a second array, and on GPUs a third one for keys where the rounds are odd in number. One thread at a time.
class sorter {
 public:
  /// devices empty: all. Throws hpe::error: no kernels for the element, a device that is none.
  sorter(const element& what, std::uint64_t count, std::vector<int> devices = {});

  /// Queues the sort of count elements and returns; the order is that of a launch. Throws hpe::error.
  void run(void* data);

  struct step {
    std::string name;
    std::function<void()> queue;  ///< valid while the sorter is there
  };
  /// What run does, one step after the other: the sorts of parts, and each round of merges.
  [[nodiscard]] std::vector<step> steps(void* data);

  /// Where data is best placed.
  [[nodiscard]] placement where() const;

  /// What was chosen and why, in a sentence.
  [[nodiscard]] std::string explain() const;

 private:
  /// Where the part begins; that of part `devices` is the end.
  [[nodiscard]] std::uint64_t cut(std::size_t part) const;
  void sort_parts(std::byte* from, std::byte* to);
  /// Merges groups of so many parts, each sorted, so many groups at a time.
  void merge_round(const std::byte* from, std::byte* to, std::size_t parts_in_group, std::size_t groups);
  void merge(const std::byte* from, std::byte* to, std::size_t device, const std::vector<std::uint64_t>& cuts);
  [[nodiscard]] std::span<std::byte> part_of(const std::byte* data, std::uint64_t from, std::uint64_t to) const;

  const element what_;
  const std::uint64_t count_;
  std::vector<int> devices_;
  std::vector<std::uint32_t> units_;  ///< compute units of each
  module module_;
  kernel<kernels::sort_merge<std::byte>> merge_;
  kernel<kernels::sort_merge_four<std::byte>> merge_four_;
  hpeKernel local_ = nullptr;              ///< soft devices only
  std::vector<repeated_sort> on_gpus_;     ///< GPUs: of each
  array<std::byte> other_;                 ///< what is merged goes here and back
  std::vector<array<std::byte>> scratch_;  ///< GPUs: of each device's local sort
};

}  // namespace hpe::sort
