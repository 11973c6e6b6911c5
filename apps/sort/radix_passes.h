#pragma once

/// A radix sort by several GPUs that reach each other's memory.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hpe/hpe.hpp"
#include "kernels/radix_pass_parameters.h"

namespace hpe::sort {

/// A stable sort in passes over digits, from the lowest; kernels/radix_pass_parameters.h describes how keys move to
/// their final devices. An object can run many times. Only one thread at a time may use it.
class radix_passes {
 public:
  /// The elements of the unsorted array that one device has. The device's part of the sorted array has about as many
  /// elements.
  struct part {
    int device;
    std::uint64_t begin, count;
  };

  static constexpr std::size_t most_devices = kernels::radix_most_devices;
  static constexpr std::uint64_t most_elements = kernels::radix_most_elements - 1;

  /// `name`: the type's name in kernels/sort.def. `parts` are consecutive parts of the array, in ascending order.
  /// Throws hpe::error, for example for too many devices or elements.
  radix_passes(const module& kernels, const std::string& name, const kernels::radix_types& types,
               const std::vector<part>& parts);

  /// Queues the search for splitters and the counts of digits.
  void count(const std::byte* data);
  /// Queues the passes that move elements to their final devices, after count(). `data` and `other` do not overlap.
  void exchange(std::byte* data, std::byte* other);
  /// Queues all further passes, after exchange() of the same arrays. The result is in `data`.
  void finish(std::byte* data, std::byte* other);

 private:
  void pass(std::uint32_t number, std::byte* data, std::byte* other);
  /// Queues a kernel on all devices. blocks: the number of blocks on each device.
  void launch_all(const kernel<kernels::radix_pass_parameters>& what, const std::vector<std::uint32_t>& blocks,
                  std::uint32_t threads, std::vector<hpeAccess> accesses);
  [[nodiscard]] std::span<std::byte> all(const std::byte* data) const;

  std::vector<int> devices_;
  std::vector<kernels::radix_pass_parameters> parameters_;  ///< kernel parameters of each device
  kernels::radix_digits_of_passes digits_;
  kernel<kernels::radix_pass_parameters> sample_, count_, places_, first_pass_, pass_, wide_pass_;
  std::vector<std::uint32_t> counting_blocks_, pass_blocks_;
  std::vector<array<kernels::radix_pass_counts>> counts_;
  std::vector<array<kernels::radix_pass_state>> states_;
  std::vector<std::array<array<std::uint32_t>, 2>> sums_;
};

}  // namespace hpe::sort
