#pragma once

/// Gather and scatter: the parameters of the kernels, and the division of a table into chunks. Programs and kernel
/// bodies include this header; it needs only <stdint.h>. The table is the array that is accessed at random: a gather
/// sets values[i] = table[indices[i]], and a scatter sets table[indices[i]] = values[i]. Elements have 4, 8, 16 or 32
/// bytes. Indices are unsigned and have 4 or 8 bytes. If an index is out of range (not below the length of the table),
/// the kernel skips its element, and gather_status records the lowest place of such an index.

#include <stdint.h>

#if defined(__CUDACC__)
#define HPE_GATHER_BOTH __host__ __device__ __forceinline__
#else
#define HPE_GATHER_BOTH inline
#endif

namespace hpe::kernels {

/// Returns the upper 64 bits of the 128-bit product a * b.
[[nodiscard]] HPE_GATHER_BOTH uint64_t upper_product(uint64_t a, uint64_t b) {
  return uint64_t((static_cast<unsigned __int128>(a) * b) >> 64);
}

/// Returns number i of a pseudo-random sequence of 64-bit values: splitmix64 (G. Steele et al., "Fast splittable
/// pseudorandom number generators", 2014).
[[nodiscard]] HPE_GATHER_BOTH uint64_t scrambled(uint64_t i, uint64_t seed) {
  uint64_t bits = (i + 1) * 0x9e3779b97f4a7c15U + seed * 0xd1342543de82ef95U;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9U;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebU;
  return bits ^ (bits >> 31);
}

enum class gather_way : uint32_t { gather, scatter };

/// The direction, and the sizes in bytes of an element and of an index.
struct gather_types {
  gather_way way;
  uint32_t element, index;
};

/// The division of a table into equal chunks, of which the last may be shorter. divide() computes it, with a reciprocal
/// by which kernels find the chunk of an index without a division.
struct gather_chunks {
  uint64_t table;       ///< number of elements in the table
  uint64_t chunk;       ///< number of elements in a chunk
  uint64_t reciprocal;  ///< 2^64 / chunk, rounded down
  uint32_t count;       ///< number of chunks; at most gather_most_chunks

  /// Returns the number of the chunk that contains an index; `count` if the index is out of range.
  [[nodiscard]] HPE_GATHER_BOTH uint32_t of(uint64_t index) const {
    if (index >= table) return count;
    const uint64_t quotient = upper_product(index, reciprocal);
    return uint32_t(quotient + (index - quotient * chunk >= chunk));
  }
};

/// The largest number of chunks of a partition, on soft devices and on GPUs. On soft devices, the buffers of a
/// partition with this number of chunks fit into a second-level cache; on GPUs, its counters fit into shared memory.
inline constexpr uint32_t gather_most_chunks = 1024, gather_most_chunks_gpu = 256;

[[nodiscard]] inline gather_chunks divide(uint64_t table, uint64_t chunk) {
  // For a chunk of one element, the reciprocal 2^64 would not fit into 64 bits.
  const uint64_t size = chunk < 2 ? 2 : chunk;
  return {table, size, uint64_t((static_cast<unsigned __int128>(1) << 64) / size), uint32_t((table + size - 1) / size)};
}

/// The result of a gather or a scatter: the lowest place of an index that is out of range; gather_in_range if all
/// indices are in range. A place is a position in the array of all indices, not in one device's part of them.
inline constexpr uint64_t gather_in_range = ~uint64_t{0};
struct gather_status {
  uint64_t first_out_of_range;
};

/// A stream of `count` indices and values. If `begin` is not null, the stream contains only elements [*begin, *end) of
/// these arrays; an earlier kernel has computed these two bounds.
struct gather_stream {
  const void* indices;
  void* values;
  uint64_t count;
  const uint64_t *begin, *end;
};

inline constexpr uint32_t gather_most_devices = 16;

/// Kernel gather_access: gathers or scatters the elements of streams, stream after stream, but only elements whose
/// indices are in [from, to). The grid may have any size.
struct gather_access_parameters {
  gather_types types;
  void* table;
  uint64_t table_count, from, to;
  const uint64_t* winners;  ///< scatter: the result of gather_mark; null: of equal indices, any value may be stored
  uint64_t first_place;     ///< place of the first index of the first stream
  gather_status* status;    ///< null: indices that are out of range are not reported
  uint32_t stream_count;
  gather_stream streams[gather_most_devices];
};

/// Kernel gather_mark: sets winners[x] to 1 + the greatest place of index x. All of `winners` must be zero before. The
/// grid may have any size.
struct gather_mark_parameters {
  uint32_t index_bytes;
  const void* indices;
  uint64_t count, first_place, table_count;
  uint64_t* winners;
};

/// A partition moves `count` indices to streams: one stream for each chunk of the table, and a last stream for indices
/// that are out of range. The indices are divided into `parts` parts, each of which has a segment of each stream.
/// The segment of part `part` in stream `chunk` begins at element offsets[chunk * parts + part].
struct gather_partition {
  gather_types types;
  gather_chunks chunks;
  const void* indices;  ///< the indices, in the caller's order
  uint64_t count, first_place;
  uint32_t parts;
  uint64_t* offsets;  ///< (chunks.count + 1) * parts offsets
  gather_status* status;

  [[nodiscard]] HPE_GATHER_BOTH uint64_t part_begin(uint32_t part) const {
    // Every part begins at the beginning of a cache line.
    const uint64_t unit = 64, units = (count + unit - 1) / unit;
    const uint64_t begin = (units / parts * part + units % parts * part / parts) * unit;
    return begin < count ? begin : count;
  }
};

/// Kernel gather_count, with gather_partition as parameters: sets offsets[chunk * parts + part] to the number of
/// indices of the part that are in the chunk. The grid must have one tile for each part. Kernel gather_offsets, with
/// gather_partition as parameters: replaces these counts by the offsets. The grid must have one tile, of
/// gather_offsets_threads threads on GPUs.
inline constexpr uint32_t gather_offsets_threads = 1024;

/// The number of threads in a block on GPUs, and the number of elements that each thread of gather_move loads at a
/// time. A thread of gather_access loads one element at a time, as in a plain kernel: with several elements, fewer
/// threads fit on a multiprocessor, and the kernel is slower.
inline constexpr uint32_t gather_access_threads = 256, gather_move_threads = 256;
[[nodiscard]] HPE_GATHER_BOTH constexpr uint32_t gather_move_each(uint32_t element) {
  return element <= 8 ? 8 : 64 / element;
}

/// Kernel gather_move: moves the indices and, for a scatter, the values to the streams. If `back` is not 0, moves the
/// values of the streams to `values`, in the order of the indices (after a gather). The grid must have one tile for
/// each part.
struct gather_move_parameters {
  gather_partition partition;
  void* stream_indices;
  void* stream_values;  ///< must be aligned to 64 bytes, like stream_indices
  void* values;         ///< the values, in the caller's order
  uint32_t back;
};

/// Kernel gather_random: sets indices[i] to a number below `table` that depends only on i and the seed. If `partitions`
/// is 0, the numbers are uniformly distributed. Otherwise, the table has `partitions` equal partitions; each index
/// falls into a random partition, and the indices of one partition ascend. The grid may have any size.
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
