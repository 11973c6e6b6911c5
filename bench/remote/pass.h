#pragma once

/// The kernels of `hpe bench remote`, after J. Cabezas's thesis, section 6.2.2: a pass reads, computes and writes each
/// element of an array, of which a part lies in far memory; a look-up reads a small table that lies
/// there.
///
/// An array is a grid of tiles, row by row; a tile is tile_elements elements in a row of memory. Blocks of threads take
/// tiles in ascending order, so the number of blocks of a launch sets how many threads a device holds at a time.

#include <stdint.h>

namespace hpe::bench::remote {

struct alignas(16) element {
  float at[4];
};

inline constexpr uint32_t tile_elements = 128;  ///< and threads of a block
inline constexpr float factor = 0.999F, addend = 0.5F;

enum near_or_far { near, far };

/// Which tiles use far memory.
struct far_part {
  uint32_t count;       ///< rows of tiles, or columns
  uint32_t in_columns;  ///< 1: the first columns of each row ("spread"); 0: the first rows ("batch")
};

struct pass {
  const element* in[2];  ///< near, far; both have all tiles
  element* out[2];       ///< likewise
  element* sums;         ///< tile_elements a block: the sum of the elements that each thread has read
  uint64_t* stamps;      ///< null, or two a tile: nanoseconds of the device's clock at its start and its end
  uint32_t columns, rows;
  far_part far_reads, far_writes;
  uint32_t steps;          ///< multiplications with addition, for each float, between reading and writing
  uint32_t reads, writes;  ///< 0: nothing is read (the element's number is written), or nothing is written
};

/// Each thread of a block reads the table at places that follow each other as the thread's number does.
struct look_up {
  const element* table;
  element* sums;       ///< tile_elements a block
  uint32_t entries;    ///< a power of two
  uint32_t reads;      ///< of each thread
  uint32_t read_only;  ///< 1: through the path for data that no thread writes (ld.global.nc)
};

/// Each thread of a block adds 1 to counters, whose places are those of a look-up.
struct adding {
  uint32_t* counters;
  uint32_t entries;  ///< a power of two
  uint32_t adds;     ///< of each thread
};

/// A filter of an image of side x side pixels: out = the sum of weights times the pixels around one, whose rows and
/// columns end with the image's edge repeated. Weights are rows of 2 reach + 1.
inline constexpr uint32_t most_reach = 2, most_weights = 25;
enum class weight_path : uint32_t {
  plain,      ///< loads of the weights' memory
  read_only,  ///< the same through the path for data that no thread writes
  parameter   ///< weights in the kernel's parameters, of which each device has a copy
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

/// A pixel's row or column, or the nearest one in the image.
[[nodiscard]] HPE_REMOTE_BOTH constexpr uint32_t in_image(int64_t place, uint32_t side) {
  return place < 0 ? 0 : place < side ? static_cast<uint32_t>(place) : side - 1;
}

/// The entry that a thread reads at its k-th read. The factor is odd, so tables of all sizes are read evenly.
[[nodiscard]] HPE_REMOTE_BOTH constexpr uint32_t entry(uint32_t block, uint32_t thread, uint32_t k, uint32_t entries) {
  return ((block * 7919 + k * 613) * tile_elements + thread) & (entries - 1);
}

}  // namespace hpe::bench::remote
