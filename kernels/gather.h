#pragma once

/// Gather and scatter: the parameters of the kernels, and the division of a table into chunks. Programs and kernel
/// bodies include this header; it needs only <stdint.h>. The table is the array that is accessed at random: gather sets
/// values[i] = table[indices[i]], scatter sets table[indices[i]] = values[i]. Elements have 4, 8, 16 or 32 bytes;
/// indices are unsigned and have 4 or 8 bytes. If an index is out of range (not below the length of the table), its
/// element is skipped, and gather_status records the lowest place of such an index.

#include <stdint.h>

#if defined(__CUDACC__)
#define HPE_GATHER_BOTH __host__ __device__ __forceinline__
#else
#define HPE_GATHER_BOTH inline
#endif

namespace hpe::kernels {

/// Returns the upper 64 bits of a product.
[[nodiscard]] HPE_GATHER_BOTH uint64_t upper_product(uint64_t a, uint64_t b) {
  return uint64_t((static_cast<unsigned __int128>(a) * b) >> 64);
}

/// Returns number i of a sequence of random bits: splitmix64 (G. Steele et al., "Fast splittable pseudorandom number
/// generators", 2014).
[[nodiscard]] HPE_GATHER_BOTH uint64_t scrambled(uint64_t i, uint64_t seed) {
  uint64_t bits = (i + 1) * 0x9e3779b97f4a7c15U + seed * 0xd1342543de82ef95U;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9U;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebU;
  return bits ^ (bits >> 31);
}

enum class gather_way : uint32_t { gather, scatter };

/// Sizes in bytes.
struct gather_types {
  gather_way way;
  uint32_t element, index;
};

/// Equal chunks of a table; the last chunk may be shorter. divide() makes them and computes a reciprocal, with which
/// kernels find the chunk of an index by multiplication instead of division.
struct gather_chunks {
  uint64_t table;       ///< number of elements of the table
  uint64_t chunk;       ///< number of elements of a chunk
  uint64_t reciprocal;  ///< 2^64 / chunk, rounded down
  uint32_t count;       ///< number of chunks; at most gather_most_chunks

  /// Returns the chunk of an index; `count` if the index is out of range.
  [[nodiscard]] HPE_GATHER_BOTH uint32_t of(uint64_t index) const {
    if (index >= table) return count;
    const uint64_t quotient = upper_product(index, reciprocal);
    return uint32_t(quotient + (index - quotient * chunk >= chunk));
  }
};

/// The largest number of chunks of a partition. On soft devices, the partition's buffers then fit into a second-level
/// cache; on GPUs, its counters fit into shared memory.
inline constexpr uint32_t gather_most_chunks = 1024, gather_most_chunks_gpu = 256;

[[nodiscard]] inline gather_chunks divide(uint64_t table, uint64_t chunk) {
  // A chunk of one element would need the reciprocal 2^64.
  const uint64_t size = chunk < 2 ? 2 : chunk;
  return {table, size, uint64_t((static_cast<unsigned __int128>(1) << 64) / size), uint32_t((table + size - 1) / size)};
}

/// The lowest place of an index out of range; gather_in_range if all indices are in range. A place is a position
/// in the whole array of indices, not in one device's part.
inline constexpr uint64_t gather_in_range = ~uint64_t{0};
struct gather_status {
  uint64_t first_out_of_range;
};

/// `count` indices and values. If `begin` is not null, the stream is only the part [*begin, *end) of these arrays; an
/// earlier kernel has computed these two bounds.
struct gather_stream {
  const void* indices;
  void* values;
  uint64_t count;
  const uint64_t *begin, *end;
};

inline constexpr uint32_t gather_most_devices = 16;

/// Kernel gather_access: gathers or scatters streams, one after the other, but only elements whose indices are in
/// [from, to). The grid may have any size.
struct gather_access_parameters {
  gather_types types;
  void* table;
  uint64_t table_count, from, to;
  const uint64_t* winners;  ///< scatter: see gather_mark; null: if indices are equal, any of their values may be stored
  uint64_t first_place;     ///< place of the first stream's first index
  gather_status* status;    ///< null: indices out of range are not reported
  uint32_t stream_count;
  gather_stream streams[gather_most_devices];
};

/// Kernel gather_mark: sets winners[x] to 1 + the greatest place at which the index x occurs. Before, all of `winners`
/// must be zero. The grid may have any size.
struct gather_mark_parameters {
  uint32_t index_bytes;
  const void* indices;
  uint64_t count, first_place, table_count;
  uint64_t* winners;
};

/// A partition: `count` indices are moved to streams, one for each chunk of the table and a last one for indices out of
/// range. The indices are divided into `parts` parts, each of which has its own segment of each stream: segment [chunk
/// * parts + part] begins at offsets[chunk * parts + part].
struct gather_partition {
  gather_types types;
  gather_chunks chunks;
  const void* indices;  ///< in the caller's order
  uint64_t count, first_place;
  uint32_t parts;
  uint64_t* offsets;  ///< (chunks.count + 1) * parts
  gather_status* status;

  [[nodiscard]] HPE_GATHER_BOTH uint64_t part_begin(uint32_t part) const {
    // Parts begin at the beginning of cache lines.
    const uint64_t unit = 64, units = (count + unit - 1) / unit;
    const uint64_t begin = (units / parts * part + units % parts * part / parts) * unit;
    return begin < count ? begin : count;
  }
};

/// Kernel gather_count, with a gather_partition: sets offsets[chunk * parts + part] to the number of the part's indices
/// in the chunk. The grid has a tile for each part. Kernel gather_offsets, with the same parameters: turns these counts
/// into the offsets. The grid has one tile, of gather_offsets_threads threads on GPUs.
inline constexpr uint32_t gather_offsets_threads = 1024;

/// The number of threads in a block on GPUs, and the number of elements that a thread of gather_move has in flight. A
/// thread of gather_access has one element in flight, as in a plain kernel: with more elements, fewer threads fit on a
/// multiprocessor, and the kernel was slower.
inline constexpr uint32_t gather_access_threads = 256, gather_move_threads = 256;
[[nodiscard]] HPE_GATHER_BOTH constexpr uint32_t gather_move_each(uint32_t element) {
  return element <= 8 ? 8 : 64 / element;
}

/// Kernel gather_move: moves the indices, and for a scatter the values, to the streams. With `back`, moves the values
/// of streams to `values`, in the order of the indices (after a gather). The grid has a tile for each part.
struct gather_move_parameters {
  gather_partition partition;
  void* stream_indices;
  void* stream_values;  ///< aligned to 64 bytes, like stream_indices
  void* values;         ///< in the caller's order
  uint32_t back;
};

/// Kernel gather_random: sets indices[i] to a number below `table` that depends on i and the seed only. If partitions
/// is 0, the numbers are uniform. Otherwise the table has this number of equal partitions; an index chooses one at
/// random, and the indices of one partition ascend. The grid may have any size.
struct gather_random_parameters {
  void* indices;
  uint32_t index_bytes;
  uint64_t count, table, seed, partitions;

  [[nodiscard]] HPE_GATHER_BOTH uint64_t at(uint64_t i) const {
    const uint64_t bits = scrambled(i, seed);
    if (partitions == 0) return upper_product(bits, table);
    const uint64_t size = table / partitions;
    return upper_product(bits, partitions) * size + i / partitions % size;
  }
};

}  // namespace hpe::kernels
