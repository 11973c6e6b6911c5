#pragma once

/// The kernels of `hpe bench remote`, after J. Cabezas's thesis, section 6.2.2: a pass reads, computes and writes each
/// element of an array, a part of which is in far memory; a look-up reads a small table in far memory.
///
/// An array is a grid of tiles, stored row by row; a tile is tile_elements consecutive elements. Blocks of threads
/// process the tiles in ascending order, so the number of blocks of a launch determines how many threads run on a
/// device at a time.

#include <stdint.h>

namespace hpe::bench::remote {

struct alignas(16) element {
  float at[4];
};

inline constexpr uint32_t tile_elements = 128;  ///< elements of a tile, and threads of a block
inline constexpr float factor = 0.999F, addend = 0.5F;

enum near_or_far { near, far };

/// Which tiles use far memory.
struct far_part {
  uint32_t count;       ///< the number of rows of tiles, or of columns
  uint32_t in_columns;  ///< 1: the first columns of each row ("spread"); 0: the first rows ("batch")
};

struct pass {
  const element* in[2];  ///< the near and the far array; each has all tiles
  element* out[2];       ///< likewise
  element* sums;         ///< tile_elements sums for each block: the sum of the elements that each thread has read
  uint64_t* stamps;      ///< null, or two for each tile: its start and its end, in nanoseconds of the device's clock
  uint32_t columns, rows;
  far_part far_reads, far_writes;
  uint32_t steps;          ///< fused multiply-adds for each float, between reading and writing
  uint32_t reads, writes;  ///< 0: nothing is read (the element's number is written), or nothing is written
};

/// The threads of a block read consecutive entries of the table.
struct look_up {
  const element* table;
  element* sums;       ///< tile_elements sums for each block
  uint32_t entries;    ///< a power of two
  uint32_t reads;      ///< the number of reads of each thread
  uint32_t read_only;  ///< 1: the table is read by the path for read-only data (ld.global.nc)
};

/// Each thread adds 1 to the counters at the indices at which a look-up would read.
struct adding {
  uint32_t* counters;
  uint32_t entries;  ///< a power of two
  uint32_t adds;     ///< the number of additions of each thread
};

/// A filter of an image of side x side pixels: an output pixel is the sum of the pixels around it, each times its
/// weight. Outside the image, the pixels of its edge are repeated. The weights are stored in rows of 2 reach + 1.
inline constexpr uint32_t most_reach = 2, most_weights = 25;
enum class weight_path : uint32_t {
  plain,      ///< the weights are loaded from memory
  read_only,  ///< the weights are loaded by the path for read-only data
  parameter   ///< the weights are in the kernel's parameters, so each device has a copy
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

/// Returns the row or column of a pixel; outside the image, the nearest one inside it.
[[nodiscard]] HPE_REMOTE_BOTH constexpr uint32_t in_image(int64_t place, uint32_t side) {
  return place < 0 ? 0 : place < side ? static_cast<uint32_t>(place) : side - 1;
}

/// Returns the index of the entry that a thread reads at its k-th read. The factors are odd, so tables of all sizes are
/// read evenly.
[[nodiscard]] HPE_REMOTE_BOTH constexpr uint32_t entry(uint32_t block, uint32_t thread, uint32_t k, uint32_t entries) {
  return ((block * 7919 + k * 613) * tile_elements + thread) & (entries - 1);
}

}  // namespace hpe::bench::remote
