#pragma once

/// The kernels of `hpe bench remote`, after J. Cabezas's thesis, section 6.2.2: a pass reads, computes and writes each
/// element of an array, some elements of which are in far memory (another device's or the host's); a look-up reads a
/// small table in far memory.
///
/// An array is a grid of tiles, stored row by row; a tile is tile_elements consecutive elements. The blocks of threads
/// process the tiles in ascending order. The number of blocks in a launch determines how many threads run on the device
/// at a time.

#include <stdint.h>

namespace hpe::bench::remote {

struct alignas(16) element {
  float at[4];
};

inline constexpr uint32_t tile_elements = 128;  ///< elements of a tile, and threads of a block
inline constexpr float factor = 0.999F, addend = 0.5F;

enum near_or_far { near, far };

/// The tiles that are in far memory.
struct far_part {
  uint32_t count;       ///< the number of rows or columns of tiles
  uint32_t in_columns;  ///< 1: the first `count` columns of each row ("spread"); 0: the first `count` rows ("batch")
};

struct pass {
  const element* in[2];  ///< the near and the far input array; each has all tiles
  element* out[2];       ///< the near and the far output array
  element* sums;         ///< tile_elements sums for each block; each sum adds up the elements that one thread has read
  uint64_t* stamps;      ///< null, or the start and end time of each tile, in nanoseconds of the device's clock
  uint32_t columns, rows;
  far_part far_reads, far_writes;
  uint32_t steps;          ///< fused multiply-adds for each float, between the read and the write
  uint32_t reads, writes;  ///< 0: the kernel reads nothing (and writes the elements' numbers), or writes nothing
};

/// The parameters of a look-up: the threads of a block read consecutive entries of the table.
struct look_up {
  const element* table;
  element* sums;       ///< tile_elements sums for each block
  uint32_t entries;    ///< a power of two
  uint32_t reads;      ///< reads of each thread
  uint32_t read_only;  ///< 1: threads read the table by the path for read-only data (ld.global.nc)
};

/// The parameters of atomic additions: each thread adds 1 to the counters at the indices at which a look-up reads.
struct adding {
  uint32_t* counters;
  uint32_t entries;  ///< a power of two
  uint32_t adds;     ///< additions of each thread
};

/// The parameters of a filter of an image of side x side pixels: an output pixel is the sum of the input pixels around
/// it, each multiplied by a weight. Outside the image, the nearest pixel of the image counts. The weights are stored as
/// rows of 2 reach + 1 weights.
inline constexpr uint32_t most_reach = 2, most_weights = 25;
enum class weight_path : uint32_t {
  plain,      ///< threads load the weights from memory
  read_only,  ///< threads load the weights by the path for read-only data
  parameter   ///< the weights are in the kernel's parameters, so that each device has a copy
};
struct filter {
  const float* in;
  float* out;
  const float* weights;
  uint32_t side, reach;
  weight_path path;
  float by_value[most_weights];
};

#ifdef __CUDACC__
#define HPE_REMOTE_BOTH __host__ __device__
#else
#define HPE_REMOTE_BOTH
#endif

[[nodiscard]] HPE_REMOTE_BOTH constexpr near_or_far where(const far_part& part, uint32_t column, uint32_t row) {
  return (part.in_columns != 0 ? column : row) < part.count ? far : near;
}

/// Returns the row or column `place`, limited to the image: places outside become the nearest row or column inside.
[[nodiscard]] HPE_REMOTE_BOTH constexpr uint32_t in_image(int64_t place, uint32_t side) {
  return place < 0 ? 0 : place < side ? static_cast<uint32_t>(place) : side - 1;
}

/// Returns the index of the table entry that a thread reads in its k-th read. Both factors are odd, so that the reads
/// cover tables of all sizes evenly.
[[nodiscard]] HPE_REMOTE_BOTH constexpr uint32_t entry(uint32_t block, uint32_t thread, uint32_t k, uint32_t entries) {
  return ((block * 7919 + k * 613) * tile_elements + thread) & (entries - 1);
}

}  // namespace hpe::bench::remote
