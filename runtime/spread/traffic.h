#pragma once

/// Computes the memory that sampled blocks of a launch access, from the records of the kernel's accesses (analysis.h).
///
/// The unit of traffic is a sector of 32 bytes. Each sector counts once for each block that reads it and once for each
/// block that writes it, as if a block's cache missed each sector once. Accesses with unknown offsets count one sector
/// each. If the memory is remote, the sectors cross a link.
///
/// If a pointer of the launch is in no allocation that hpe knows, the memory is host memory, and offsets in it are
/// addresses. A null pointer has no traffic: the kernel does not access memory through it.

#include <span>
#include <string>
#include <vector>

#include "runtime/spread/grid_cut.h"
#include "runtime/spread/model/kernel_model.h"

namespace hpe::spread {

/// Accesses of one block to adjacent sectors.
struct touch {
  std::uint32_t pointer = 0;
  bool writes = false;
  std::uint64_t offset = 0;  // offset of the first byte in the allocation; its address if the allocation is not known
  double bytes = 0;
};

/// Accesses of one block to an unknown allocation, or with unknown offsets in an allocation.
struct scattered_touches {
  std::uint32_t pointer =
      0;  // index into kernel_model::pointers; the index after the last pointer means an unknown allocation
  bool writes = false;
  double bytes = 0;
};

struct block_traffic {
  dimension block{};
  bool is_extra = false;  // whether the block is the first or last block of a part; it represents only itself, unless
                          // the part has no other sampled block
  double instructions = 0;
  std::vector<touch>
      touches;  // in ascending order of pointers; by pointer, reads before writes, each in ascending order of offsets
  std::vector<scattered_touches> scattered;
};

/// The size of the sample. The accesses of a few blocks are computed in detail, and give the number of bytes that a
/// block uses. The accesses of a few threads in many blocks give the offsets of these bytes.
struct sample_size {
  std::uint64_t detailed_blocks = 4;
  std::uint64_t blocks = 192;
  std::uint64_t accesses = 20000;  // about how many accesses of each detailed block to compute
  /// Returns a size that includes all blocks, threads and iterations, for small launches.
  static sample_size all() { return {~0ULL, ~0ULL, ~0ULL}; }
};

struct traffic {
  std::vector<block_traffic> blocks;
  /// The distance between the bytes that a pointer's accesses use in one block or iteration and in the next block or
  /// iteration.
  struct stride {
    std::uint32_t pointer = 0;
    std::uint64_t bytes = 0;
    bool operator==(const stride&) const = default;
  };
  std::vector<stride> strides;
};

/// Computes the traffic of a launch. `arrays` has the allocation of each pointer (kernel_model::pointers), or null for
/// a pointer that is in no allocation that hpe knows. The sample includes the first and last blocks of the parts of
/// `cuts`.
[[nodiscard]] traffic sample_traffic(const kernel_model& kernel, const launch& l,
                                     std::span<const kernel_array* const> arrays, std::span<const cut> cuts,
                                     const sample_size& size);

/// The launch that a decision is about. All members must outlive the object.
struct asked_launch {
  const kernel_model& kernel;
  const launch& l;
  std::span<const kernel_array* const> arrays;

  [[nodiscard]] std::uint64_t pointer(std::size_t n) const { return l.pointer_at(kernel.pointers()[n].offset); }
  /// Returns the offset of pointer n in its allocation. arrays[n] must not be null.
  [[nodiscard]] std::uint64_t offset_of(std::size_t n) const { return pointer(n) - arrays[n]->address; }
  /// Returns the bytes of the parameters, other than pointers, on which the accesses depend (kernel_model::bytes).
  [[nodiscard]] std::string scalars() const;
  /// Returns whether scalars() would return these bytes.
  [[nodiscard]] bool has_scalars(const std::string& known) const;
  /// Returns a key of all other inputs of the sample for this kernel: the shape, the sizes of the arrays, the offsets
  /// of the pointers, which pointers point into the same allocation, and which pointers are null.
  [[nodiscard]] std::string key_of_traffic() const;
};

}  // namespace hpe::spread
