#pragma once

/// The input of a decision about a launch: the launch's shape and parameters, and the arrays that the kernel uses. The
/// home of a byte is the device whose memory contains the byte. The types here are plain values, which need no devices
/// and no driver. Sizes and offsets are in bytes.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace hpe::spread {

using dimension = std::array<std::uint32_t, 3>;

/// The blocks with first <= index < first + count along each axis.
struct subgrid {
  dimension first{0, 0, 0}, count{0, 0, 0};
  [[nodiscard]] std::uint64_t blocks() const { return std::uint64_t{count[0]} * count[1] * count[2]; }
  /// Returns the indices of the last block. There must be a block.
  [[nodiscard]] dimension last() const {
    return {first[0] + count[0] - 1, first[1] + count[1] - 1, first[2] + count[2] - 1};
  }
  [[nodiscard]] bool contains(const dimension& block) const;
  bool operator==(const subgrid&) const = default;
};

/// Devices are numbered from 0 in the order in which the caller spreads launches over them. A home below 0 is host
/// memory.
using device_number = std::int32_t;
inline constexpr device_number host = -1;

/// The bytes first <= offset < last of an allocation, and the device whose memory contains them.
struct home_run {
  std::uint64_t first = 0, last = 0;
  device_number home = 0;
  bool operator==(const home_run&) const = default;
};

/// An array of a kernel: an allocation, and the homes of its bytes. Several pointers of one launch may point into the
/// same allocation.
struct kernel_array {
  std::uint64_t address = 0, bytes = 0;
  std::uint64_t granule = 0;    // the unit, in bytes, in which homes can change; 0 if the allocation cannot move
  std::vector<home_run> homes;  // in ascending order, without gaps; adjacent runs have different homes
  bool may_replicate = true;    // whether hpe knows all writes to the allocation, so that it can keep replicas valid
  bool is_replicated = false;   // whether each device has a valid replica; `homes` are the homes of the original
  bool is_empty = false;        // whether the allocation was never written, so that a move copies nothing
  /// A number that changes whenever one of the other members changes, or when another allocation gets the same address.
  std::uint64_t version = 0;

  [[nodiscard]] device_number home_of(std::uint64_t offset) const;
};

struct launch {
  dimension grid{1, 1, 1}, block{1, 1, 1};
  /// The kernel's parameters, in the layout of a launch's parameter buffer. kernel_model contains the offsets of the
  /// pointers.
  const void* parameters = nullptr;
  std::uint64_t parameter_bytes = 0;

  /// Returns the pointer at an offset in the parameters; 0 if the launch has fewer parameters.
  [[nodiscard]] std::uint64_t pointer_at(std::uint32_t offset) const;
  /// Returns whether the sizes along each axis are within CUDA's limits. Does not limit the number of threads of a
  /// block.
  [[nodiscard]] bool is_possible() const;
};

/// Appends the bytes of a value to a key for a table.
template <class T>
void append(std::string& key, const T& value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace hpe::spread
