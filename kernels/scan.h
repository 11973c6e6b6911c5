#pragma once

/// Batched scans: the parameters of the kernels, and how problems are cut into tiles. Programs and kernel bodies
/// include this header; it needs only <stdint.h>.
///
/// G problems of N elements each are stored one after the other. A scan replaces element i of a problem by the
/// combination of the problem's elements 0 to i (inclusive scan), or 0 to i - 1 (exclusive scan: element 0 becomes the
/// operator's identity). The output is the input itself or does not overlap it.

#include <stdint.h>

namespace hpe::kernels {

/// How problems are cut into tiles; a block of threads processes one tile at a time. A tile contains a part of one
/// problem, or several whole problems.
struct scan_tiling {
  uint64_t length;             ///< N: elements of a problem
  uint64_t problems;           ///< G: number of problems
  uint64_t count;              ///< number of all tiles; the kernels support at most 2^31
  uint64_t tiles_per_problem;  ///< 0: a tile contains several problems
  uint32_t part;  ///< elements in each tile except the last of a problem (of the launch if several_problems())

  [[nodiscard]] constexpr bool several_problems() const { return tiles_per_problem == 0; }
  /// Returns the number of tiles that are dealt out to devices as one sequence: the tiles of a problem, or all tiles if
  /// a tile contains several problems.
  [[nodiscard]] constexpr uint64_t sequence() const { return several_problems() ? count : tiles_per_problem; }
};

/// Returns a division into tiles of at most `room` elements. If a tile may begin at any element, not only at an address
/// that is a multiple of `vector` elements, tiles have up to vector - 1 elements less. Long problems are cut into full
/// tiles, so that tiles begin at the bounds of granules; short problems are cut into equal tiles.
[[nodiscard]] constexpr scan_tiling make_tiling(uint64_t length, uint64_t problems, uint32_t room, uint32_t vector,
                                                bool input_aligned) {
  if (length == 0 || problems == 0) return {length, problems, 0, 1, 0};
  const uint32_t usable = input_aligned && (problems == 1 || length % vector == 0) ? room : room - (vector - 1);
  if (2 * length <= usable) {
    const uint64_t each = usable / length;
    return {length, problems, (problems + each - 1) / each, 0, uint32_t(each * length)};
  }
  const uint64_t tiles = (length + usable - 1) / usable;
  constexpr uint64_t many = 64;
  uint64_t part = tiles < many ? (length + tiles - 1) / tiles : usable;
  const uint64_t rounded = (part + vector - 1) / vector * vector;
  if (rounded <= usable) part = rounded;
  const uint64_t needed = (length + part - 1) / part;
  return {length, problems, needed * problems, needed, uint32_t(part)};
}

/// A tile. begin: the position of the tile's first element, counted from the first element of the first problem.
struct scan_tile {
  uint64_t begin;
  uint64_t first;  ///< number of the first tile of the problem
  uint64_t index;  ///< the tile's place among the tiles of the problem
  uint32_t count;
};

[[nodiscard]] constexpr scan_tile tile_of(const scan_tiling& tiling, uint64_t number) {
  if (tiling.several_problems()) {
    const uint64_t begin = number * tiling.part, all = tiling.length * tiling.problems;
    return {begin, number, 0, uint32_t(all - begin < tiling.part ? all - begin : tiling.part)};
  }
  const auto of_problem = uint32_t(tiling.tiles_per_problem), problem = uint32_t(number) / of_problem;
  const uint32_t index = uint32_t(number) - problem * of_problem;
  const uint64_t offset = uint64_t(index) * tiling.part, rest = tiling.length - offset;
  return {problem * tiling.length + offset, number - index, index, uint32_t(rest < tiling.part ? rest : tiling.part)};
}

/// The size of a tile in bytes, and the number of threads in a block, of the single-pass kernels on GPUs.
inline constexpr uint32_t single_pass_tile_bytes = 32768;
inline constexpr uint32_t single_pass_threads = 864;
/// The size of a vector in bytes. Tiles that begin at a multiple of this size are the fastest.
inline constexpr uint32_t scan_vector_alignment = 16;

/// The largest number of devices that take part in one scan.
inline constexpr unsigned scan_devices = 16;

/// How several devices share the tiles of each problem: chunks of consecutive tiles are dealt out to the devices in
/// turn.
struct scan_deal {
  uint32_t device, devices;
  uint32_t chunk;               ///< tiles in a chunk, at most scan_chunk_tiles
  uint32_t chunks_per_problem;  ///< the last chunk of a problem may have fewer tiles
  uint32_t chunks_each;         ///< the largest number of chunks that a device has

  /// Returns the index at which a chunk's total is stored. The totals that one device writes are adjacent, because
  /// cache lines to which several devices write are slow.
  [[nodiscard]] constexpr uint32_t place_of_total(uint32_t chunk) const {
    return chunk % devices * chunks_each + chunk / devices;
  }
};
inline constexpr uint32_t scan_chunk_tiles = 128;

/// Returns how tiles are dealt out, for the first device; the other devices change only the member `device`.
[[nodiscard]] constexpr scan_deal make_deal(const scan_tiling& tiling, uint32_t devices, uint32_t chunk) {
  const uint64_t per_problem = (tiling.sequence() + chunk - 1) / chunk;
  const uint64_t chunks = per_problem * (tiling.count / tiling.sequence());
  return {0, devices, chunk, uint32_t(per_problem), uint32_t((chunks + devices - 1) / devices)};
}

/// The tile that belongs to a ticket of a device.
struct dealt_tile {
  uint64_t number;  ///< the number of the tile
  uint32_t chunk;   ///< the chunk that contains the tile
  uint32_t place;   ///< the tile's place within the chunk
  bool none;        ///< no tile belongs to this ticket, but tiles may belong to later tickets
  bool last;        ///< no tile belongs to this ticket or to any later one
};

[[nodiscard]] constexpr dealt_tile tile_for(const scan_tiling& tiling, const scan_deal& deal, uint64_t ticket) {
  if (deal.devices == 1) return {ticket, 0, 0, false, ticket >= tiling.count};
  const auto per_problem = uint32_t(tiling.sequence());
  const uint32_t own = uint32_t(ticket) / deal.chunk, place = uint32_t(ticket) - own * deal.chunk;
  const uint32_t chunk = own * deal.devices + deal.device;
  const uint32_t problem = chunk / deal.chunks_per_problem;
  const uint32_t index = (chunk - problem * deal.chunks_per_problem) * deal.chunk + place;
  const uint64_t first = uint64_t(problem) * per_problem;
  return {first + index, chunk, place, index >= per_problem, first >= tiling.count};
}

/// The counters that the blocks of a single-pass scan share on a device. They must be zero before the first launch;
/// each launch resets them to zero.
struct scan_tickets {
  unsigned long long next;  ///< number of tickets that blocks have taken
  unsigned long long left;  ///< number of blocks that have taken their last ticket
};

/// A scan in one pass: any number of blocks take tickets for tiles. Totals carry the mark of the launch, so that they
/// need not be cleared. With several devices, each device runs the kernel on its tiles, all at the same time.
template <class T>
struct scan_single_pass {
  const T* input;
  T* output;
  scan_tiling tiling;
  scan_deal deal;
  uint64_t reciprocal;  ///< if a tile contains several problems: 2^32 / length, rounded up
  uint32_t inclusive;
  uint32_t launch;  ///< the mark of the launch: not 0, and different from the marks of earlier launches
  /// Soft devices: 1 if the kernel writes the results with stores that bypass the caches, because the results are too
  /// large for the caches and do not replace the input.
  uint32_t stream;
  scan_tickets* tickets;
  void* totals[scan_devices];  ///< for each device, one word for each tile; a word has twice the size of an element
  // With several GPUs, which pass the totals of chunks to each other:
  void* chunk_totals[scan_devices];  ///< for each device, an array with a word like those in totals for each chunk
};

/// What a device computes of a batch: elements [from, to) of each of `problems` problems, in chunks.
struct scan_share {
  uint64_t length;    ///< N: distance from one problem to the next in elements
  uint64_t problems;  ///< number of problems in this share
  uint64_t from, to;
  uint64_t chunk;  ///< elements in a chunk
  /// chunks of each problem
  [[nodiscard]] constexpr uint64_t chunks() const { return (to - from + chunk - 1) / chunk; }
};

/// A scan in three stages (Dieguez et al., section 3.1), with one launch for each stage. All launches have these
/// parameters. Kernel scan_reduce sets sums[problem][first_sum + chunk] to the combination of all elements of the
/// chunk. Kernel scan_sums replaces each row of sums by the row's exclusive scan; it does not use share.from, share.to
/// and share.chunk. Kernel scan_chunks scans each chunk, starting from the chunk's element of sums, which is the
/// combination of all earlier chunks, and writes the result to the output. If sums is null, each problem must have one
/// chunk.
///
/// The grid may have any size: its tiles have about equal numbers of chunks (for scan_sums, of problems).
template <class T>
struct scan_three_stages {
  const T* input;  ///< element 0 of the share's first problem
  T* output;
  T* sums;  ///< the sums of the share's first problem
  /// Distance from one row of sums to the next: the number of chunks of a problem in all shares.
  uint64_t sums_per_problem;
  uint64_t first_sum;
  scan_share share;
  uint32_t inclusive;
  /// Soft devices: 1 if the kernel writes the results with stores that bypass the caches, because the results are too
  /// large for the caches and do not replace the input.
  uint32_t stream;
};

/// Kernel scan_fence does nothing; the accesses of its launch order other launches.
struct scan_fence_parameters {
  uint32_t unused;
};

}  // namespace hpe::kernels
