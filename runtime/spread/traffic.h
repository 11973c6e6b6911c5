#pragma once

/// The memory that sample blocks of a launch access, computed from the records of the kernel's accesses.
///
/// The unit is the sector of 32 bytes, counted once for each block that reads it and once for each block that writes
/// it, as if a block's cache missed each sector once: these are the bytes that cross a link if the memory is remote.

#include <span>
#include <vector>

#include "runtime/spread/decision.h"
#include "runtime/spread/kernel_model.h"

namespace hpe::spread {

/// Accesses of one block to neighbouring sectors.
struct touch {
  std::uint32_t pointer = 0;
  bool writes = false;
  std::uint64_t offset = 0;  // in the allocation
  double bytes = 0;
};

/// Accesses of one block somewhere in an allocation, at places that depend on data.
struct scattered_touches {
  std::uint32_t pointer = 0;  // beyond the kernel's pointers: somewhere in memory
  bool writes = false;
  double bytes = 0;
};

struct block_traffic {
  dimension block{};
  bool is_extra = false;  // taken as the first or last block of a part; stands for itself alone
  double instructions = 0;
  std::vector<touch> touches;  // ascending by pointer and offset
  std::vector<scattered_touches> scattered;
};

/// How much is sampled: some blocks in detail, which gives the bytes that a block uses, and many by single threads at
/// any time, which gives the places.
struct sample_size {
  std::uint64_t detailed_blocks = 4;
  std::uint64_t blocks = 192;
  std::uint64_t accesses = 20000;  // computed in detail
  /// All blocks, threads and iterations, for small launches.
  static sample_size all() { return {~0ULL, ~0ULL, ~0ULL}; }
};

struct traffic {
  std::vector<block_traffic> blocks;
  /// Distances between bytes that a pointer's accesses use for one more block or iteration.
  struct stride {
    std::uint32_t pointer = 0;
    std::uint64_t bytes = 0;
    bool operator==(const stride&) const = default;
  };
  std::vector<stride> strides;
};

/// `cuts` are those whose first and last blocks are sampled too.
[[nodiscard]] traffic sample_traffic(const kernel_model& kernel, const launch& l,
                                     std::span<const allocation* const> arrays, std::span<const cut> cuts,
                                     const sample_size& size);

}  // namespace hpe::spread
