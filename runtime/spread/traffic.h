#pragma once

/// The memory that sample blocks of a launch access, computed from the records of the kernel's accesses.
///
/// The unit is the sector of 32 bytes, counted once for each block that reads the sector and once for each block that
/// writes it, as if a block's cache missed each sector once. The sectors counted in this way are the bytes that cross a
/// link if the memory is remote.

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "runtime/spread/decision.h"
#include "runtime/spread/kernel_model.h"

namespace hpe::spread {

/// Accesses of one block to neighbouring sectors.
struct touch {
  std::uint32_t pointer = 0;
  bool writes = false;
  std::uint64_t offset = 0;  // offset of the first byte in the allocation
  double bytes = 0;
};

/// Accesses of one block somewhere in an allocation, at places that depend on data.
struct scattered_touches {
  std::uint32_t pointer = 0;  // index into the kernel's pointers; past the last one: anywhere in memory
  bool writes = false;
  double bytes = 0;
};

struct block_traffic {
  dimension block{};
  bool is_extra = false;  // sampled as the first or last block of a part; represents only itself
  double instructions = 0;
  std::vector<touch> touches;  // ascending by pointer and offset
  std::vector<scattered_touches> scattered;
};

/// The size of the sample: a few blocks in detail, to count the bytes that a block uses, and single threads of many
/// blocks, to find where the bytes are.
struct sample_size {
  std::uint64_t detailed_blocks = 4;
  std::uint64_t blocks = 192;
  std::uint64_t accesses = 20000;  // number of accesses that are computed in detail
  /// All blocks, threads and iterations, for small launches.
  static sample_size all() { return {~0ULL, ~0ULL, ~0ULL}; }
};

struct traffic {
  std::vector<block_traffic> blocks;
  /// The distance between the bytes that a pointer's accesses use in one block or iteration and those that they use in
  /// the next.
  struct stride {
    std::uint32_t pointer = 0;
    std::uint64_t bytes = 0;
    bool operator==(const stride&) const = default;
  };
  std::vector<stride> strides;
};

/// Computes the traffic of a launch. The first and last blocks of the parts of `cuts` are sampled, too.
[[nodiscard]] traffic sample_traffic(const kernel_model& kernel, const launch& l,
                                     std::span<const allocation* const> arrays, std::span<const cut> cuts,
                                     const sample_size& size);

/// The launch that a decision is about. Keeps references.
struct asked_launch {
  const kernel_model& kernel;
  const launch& l;
  std::span<const allocation* const> arrays;

  /// Of a pointer in its allocation.
  [[nodiscard]] std::uint64_t offset_of(std::size_t n) const {
    std::uint64_t pointer = 0;
    const std::uint32_t at = kernel.pointers()[n].offset;
    if (at + sizeof pointer <= l.parameter_bytes)
      std::memcpy(&pointer, static_cast<const std::byte*>(l.parameters) + at, sizeof pointer);
    return pointer - arrays[n]->address;
  }
  /// The bytes of those parameters, other than pointers, that addresses depend on.
  [[nodiscard]] std::string scalars() const;
  /// Whether scalars() returns these bytes.
  [[nodiscard]] bool has_scalars(const std::string& known) const;
  /// Shape, sizes, and which pointers point into the same allocation: what the sampled accesses depend on.
  [[nodiscard]] std::string key_of_traffic() const;
};

}  // namespace hpe::spread
