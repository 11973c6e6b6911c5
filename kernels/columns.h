#pragma once

/// How the blocks of a launch divide a box of cells on a GPU. The box is cut along y and z into columns of tiles, and
/// each block marches along x through a column (kernels/cuda/wave_march.cuh).

#include <stdint.h>

namespace hpe::kernels {

/// The tile of a column has march_rows rows of march_cells cells along z. Each thread computes four cells.
inline constexpr int64_t march_rows = 16, march_cells = 64;
inline constexpr int64_t march_threads = march_rows * march_cells / 4;
/// The number of blocks that run on a multiprocessor at a time.
inline constexpr int64_t march_blocks = 2;

/// Each of the columns [0, whole) is computed by one block of threads. Each of the other columns is cut along x into
/// tiles of tile_x planes, one for each block.
struct column_cut {
  int64_t whole;
  int64_t tile_x;
};

/// Returns a division with little run time. Blocks run in rounds, each of as many blocks as the device runs at a time.
/// All rounds but the last ones compute whole columns; the remaining columns are cut so that they fill the last rounds.
/// A block also fetches the planes before and after its tile. These fetches cost as much as `ends` more planes.
[[nodiscard]] constexpr column_cut cut_columns(int64_t columns, int64_t planes, int64_t multiprocessors) {
  constexpr int64_t ends = 4, most_rounds = 8, least = 8;
  const int64_t at_a_time = march_blocks * multiprocessors;
  column_cut best{columns / at_a_time * at_a_time, planes};
  const int64_t left = columns - best.whole;
  int64_t best_cost = planes + ends;
  for (int64_t rounds = 1; rounds <= most_rounds && left > 0; ++rounds) {
    const int64_t parts = rounds * at_a_time / left;
    const int64_t tile_x = (planes + parts - 1) / parts;
    const int64_t cost = rounds * (tile_x + ends);
    if (tile_x < least || cost >= best_cost) continue;
    best_cost = cost;
    best.tile_x = tile_x;
  }
  return best;
}

/// What one block of a launch computes: planes [x0, x1) of column number `column`.
struct column_tile {
  int64_t column, x0, x1;
};

[[nodiscard]] constexpr uint32_t count_tiles(const column_cut& cut, int64_t columns, int64_t planes) {
  return uint32_t(cut.whole + (columns - cut.whole) * ((planes + cut.tile_x - 1) / cut.tile_x));
}

/// Returns the tile of block n. Tiles with the same range of x are numbered one after the other, so that neighbours in
/// y and z run at about the same time and find their shared cells in the cache.
[[nodiscard]] constexpr column_tile find_tile(const column_cut& cut, int64_t columns, int64_t planes, int64_t n) {
  if (n < cut.whole) return {n, 0, planes};
  const int64_t left = columns - cut.whole, part = (n - cut.whole) / left, x0 = part * cut.tile_x;
  return {cut.whole + (n - cut.whole) % left, x0, x0 + cut.tile_x < planes ? x0 + cut.tile_x : planes};
}

}  // namespace hpe::kernels
