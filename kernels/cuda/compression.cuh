#pragma once

/// The bodies for GPUs of the kernels for compressed wave fields (kernels/wave_parameters.h). A warp processes a row,
/// several compressed blocks at a time; each lane processes two neighbouring cells of a block.

#include "kernels/cuda/warp.cuh"
#include "kernels/cuda/wave.cuh"

namespace hpe::kernels::cuda {
namespace {

inline constexpr int cells_of_lane = 2, cells_of_warp = cells_of_lane * static_cast<int>(gpu::warp_size);
inline constexpr int lanes_of_block = static_cast<int>(block_cells) / cells_of_lane;
static_assert(gpu::warp_size % lanes_of_block == 0, "the lanes of a warp share whole blocks");

/// The addresses of a compressed row, and the lane that processes a part of it.
template <class T, class Byte>
struct compressed_part {
  Byte* ranges;
  Byte* integers;
  int64_t blocks;
  int lane;

  __device__ compressed_part(Byte* row, int64_t nz)
      : ranges(row),
        integers(row + (nz + block_cells - 1) / block_cells * static_cast<int64_t>(sizeof(block_range<T>))),
        blocks((nz + block_cells - 1) / block_cells),
        lane(static_cast<int>(threadIdx.x % gpu::warp_size)) {}

  /// Returns the number of the block that this lane processes if the first cell of the warp is `begin`.
  __device__ int64_t block(int64_t begin) const { return begin / block_cells + lane / lanes_of_block; }
};

/// Store and load two integers, each of which has 4, 8 or 16 bits in memory.
__device__ inline void store_pair(uint8_t* integers, int lane, int64_t bits, uint32_t first, uint32_t second) {
  if (bits == 4)
    integers[lane] = static_cast<uint8_t>(first | second << 4);
  else if (bits == 8)
    reinterpret_cast<uint16_t*>(integers)[lane] = static_cast<uint16_t>(first | second << 8);
  else
    reinterpret_cast<uint32_t*>(integers)[lane] = first | second << 16;
}

__device__ inline uint2 load_pair(const uint8_t* integers, int lane, int64_t bits) {
  if (bits == 4) return make_uint2(integers[lane] & 15U, integers[lane] >> 4);
  if (bits == 8) {
    const uint32_t both = reinterpret_cast<const uint16_t*>(integers)[lane];
    return make_uint2(both & 255U, both >> 8);
  }
  const uint32_t both = reinterpret_cast<const uint32_t*>(integers)[lane];
  return make_uint2(both & 65535U, both >> 16);
}

template <class T>
__device__ uint32_t quantised(T cell, T lowest, T inverse, int levels) {
  const auto rounded = static_cast<int>(add(multiply(add(cell, -lowest), inverse), T(0.5)));
  return static_cast<uint32_t>(min(rounded, levels));
}

template <class T>
__device__ void run(const keep_compressed<T>& p) {
  const int64_t nz = p.cells.nz;
  const auto levels = static_cast<int>((1 << p.bits) - 1);
  for_rows(p, [&](int64_t row, int64_t field) {
    const compressed_part<T, uint8_t> part(p.kept + row * compressed_row<T>(nz, p.bits), nz);
    for (int64_t begin = 0; begin < nz; begin += cells_of_warp) {
      // Lanes beyond the row's end repeat the first cell of their block, or the last cell of the row, so that they do
      // not change the block's range.
      const int64_t block = part.block(begin), i = begin + cells_of_lane * part.lane;
      const int64_t spare = min(block * block_cells, nz - 1);
      const T* const cells = p.field + field;
      const T first = cells[i < nz ? i : spare], second = cells[i + 1 < nz ? i + 1 : spare];
      T lowest = min(first, second), largest = max(first, second);
      for (int distance = lanes_of_block / 2; distance > 0; distance /= 2) {
        lowest = min(lowest, __shfl_xor_sync(gpu::all_lanes, lowest, distance));
        largest = max(largest, __shfl_xor_sync(gpu::all_lanes, largest, distance));
      }
      const bool both_signs = lowest < 0 && largest > 0;
      const T step = add(largest, -lowest) / T(both_signs ? levels - 1 : levels);
      const T inverse = step > T(1e-37) ? 1 / step : T(0);
      const auto zero = static_cast<int>(add(multiply(-lowest, inverse), T(0.5)));
      const block_range<T> range{both_signs ? multiply(-step, T(zero)) : lowest, step};
      if (block >= part.blocks) continue;
      if (part.lane % lanes_of_block == 0) reinterpret_cast<block_range<T>*>(part.ranges)[block] = range;
      store_pair(part.integers + begin * p.bits / 8, part.lane, p.bits, quantised(first, range.least, inverse, levels),
                 quantised(second, range.least, inverse, levels));
    }
  });
}

template <class T>
__device__ void run(const correlate_compressed<T>& p) {
  const int64_t nz = p.cells.nz;
  for_rows(p, [&](int64_t row, int64_t field) {
    const compressed_part<T, const uint8_t> part(p.kept + row * compressed_row<T>(nz, p.bits), nz);
    for (int64_t begin = 0; begin < nz; begin += cells_of_warp) {
      const int64_t block = part.block(begin);
      if (block >= part.blocks) continue;
      const block_range<T> range = reinterpret_cast<const block_range<T>*>(part.ranges)[block];
      const uint2 q = load_pair(part.integers + begin * p.bits / 8, part.lane, p.bits);
      const uint32_t pair[cells_of_lane] = {q.x, q.y};
      for (int k = 0; k < cells_of_lane; ++k) {
        const int64_t i = begin + cells_of_lane * part.lane + k;
        if (i >= nz) continue;
        const T kept = multiply_add(range.step, T(pair[k]), range.least);
        const int64_t packed = row * nz + i;
        p.image[packed] = multiply_add(kept, p.field[field + i], p.image[packed]);
        p.illumination[packed] = multiply_add(kept, kept, p.illumination[packed]);
      }
    }
  });
}

}  // namespace
}  // namespace hpe::kernels::cuda
