#pragma once

/// How the tiles of a single-pass scan exchange totals: each tile publishes its total once, and a later tile combines
/// the totals of all tiles before it. The total and the mark of the launch are in one word, which is written and read
/// as a whole, so that no fences are needed (Liu and Aluru, LightScan, section 4.3).
///
/// Unlike in the decoupled look-back of Merrill and Garland, no tile waits for the prefix of another tile. A tile waits
/// only for totals, which depend only on the elements of their own tiles. A block keeps the prefix of its previous tile
/// and adds the totals of the tiles between that tile and its current one. Totals are combined in groups with fixed
/// bounds, so that a tile's result is rounded in the same way in every run, whichever block computes it.

#include <stdint.h>

#include "kernels/cuda/warp.cuh"
#include "kernels/scan.h"

namespace hpe::kernels::gpu {

/// The total of a tile, with the mark of its launch.
template <unsigned bytes>
struct tile_total_word;

template <>
struct alignas(8) tile_total_word<4> {
  unsigned bits, mark;
  __device__ __forceinline__ void store(unsigned value, unsigned launch) {
    asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(__cvta_generic_to_global(this)),
                 "l"(uint64_t{launch} << 32 | value)
                 : "memory");
  }
  __device__ __forceinline__ bool load(unsigned& value, unsigned launch) const {
    uint64_t word;
    asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(word) : "l"(__cvta_generic_to_global(this)) : "memory");
    value = static_cast<unsigned>(word);
    return static_cast<unsigned>(word >> 32) == launch;
  }
};

template <>
struct alignas(16) tile_total_word<8> {
  unsigned long long bits, mark;
  __device__ __forceinline__ void store(unsigned long long value, unsigned launch) {
    asm volatile("{\n.reg .b128 word;\nmov.b128 word, {%1, %2};\nst.relaxed.sys.global.b128 [%0], word;\n}" ::"l"(
                     __cvta_generic_to_global(this)),
                 "l"(value), "l"(static_cast<unsigned long long>(launch))
                 : "memory");
  }
  __device__ __forceinline__ bool load(unsigned long long& value, unsigned launch) const {
    unsigned long long found;
    asm volatile("{\n.reg .b128 word;\nld.relaxed.sys.global.b128 word, [%2];\nmov.b128 {%0, %1}, word;\n}"
                 : "=l"(value), "=l"(found)
                 : "l"(__cvta_generic_to_global(this))
                 : "memory");
    return found == launch;
  }
};

template <class T>
using tile_total = tile_total_word<sizeof(T)>;

/// The number of tiles of a problem whose totals a warp combines together; each lane combines four totals.
inline constexpr unsigned tiles_per_group = scan_chunk_tiles;
static_assert(tiles_per_group == 4 * warp_size, "each lane takes four");

/// Finds the prefixes of tiles for one warp, which must request tiles in ascending order. `totals` contains the totals
/// of all tiles of a launch.
template <class T, class Op>
class look_back {
 public:
  __device__ look_back(const tile_total<T>* totals, unsigned launch, Op op)
      : totals_(totals), launch_(launch), op_(op), before_(op.identity()) {}

  /// Returns the combination of all elements before tile `index` of a problem. first: the number of the problem's first
  /// tile. All lanes of the warp must make the call, and all receive the result. Waits for tiles that have not
  /// published their totals yet.
  __device__ T prefix(uint64_t first, uint64_t index, unsigned lane) {
    if (first != first_) {
      first_ = first;
      group_ = 0;
      before_ = op_.identity();
    }
    for (;;) {
      const uint64_t end_near = (group_ + 1) * tiles_per_group;
      T near = op_.identity(), far = op_.identity();
      combine(first, index, lane, near, far);
      const T with_near = op_(before_, near);
      if (index < end_near) return with_near;
      before_ = with_near;
      ++group_;
      if (index < end_near + tiles_per_group) return op_(before_, far);
      before_ = op_(before_, far);
      ++group_;
    }
  }

 private:
  /// Combines the totals of tiles before `end` in group `group_` (near) and in the next group (far); loads the totals
  /// of both groups together.
  __device__ __forceinline__ void combine(uint64_t first, uint64_t end, unsigned lane, T& near, T& far) const {
    constexpr unsigned each = tiles_per_group / warp_size;
    bits_of<T> value[2][each];
    const uint64_t mine = group_ * tiles_per_group + lane * each;
    bool all;
    do {
      all = true;
#pragma unroll
      for (unsigned g = 0; g < 2; ++g)
#pragma unroll
        for (unsigned i = 0; i < each; ++i) {
          const uint64_t tile = mine + g * tiles_per_group + i;
          if (tile < end) all &= totals_[first + tile].load(value[g][i], launch_);
        }
    } while (!__all_sync(all_lanes, all));
#pragma unroll
    for (unsigned i = 0; i < each; ++i) {
      if (mine + i < end) near = op_(near, bit_cast<T>(value[0][i]));
      if (mine + tiles_per_group + i < end) far = op_(far, bit_cast<T>(value[1][i]));
    }
    near = warp_reduce(near, op_);
    far = warp_reduce(far, op_);
  }

  const tile_total<T>* totals_;
  unsigned launch_;
  Op op_;
  uint64_t first_ = ~uint64_t{0};
  uint64_t group_ = 0;  ///< before_ combines all tiles before this group
  T before_;
};

/// Returns the combination of the totals of `count` tiles from `first` on, in order; count is at most tiles_per_group.
/// Waits for the totals. A whole warp must call this function.
template <class T, class Op>
__device__ __forceinline__ T combine_tiles(const tile_total<T>* first, unsigned count, unsigned launch, Op op,
                                           unsigned lane) {
  constexpr unsigned each = tiles_per_group / warp_size;
  bits_of<T> value[each];
  bool all;
  do {
    all = true;
#pragma unroll
    for (unsigned i = 0; i < each; ++i)
      if (lane * each + i < count) all &= first[lane * each + i].load(value[i], launch);
  } while (!__all_sync(all_lanes, all));
  T sum = op.identity();
#pragma unroll
  for (unsigned i = 0; i < each; ++i)
    if (lane * each + i < count) sum = op(sum, bit_cast<T>(value[i]));
  return warp_reduce(sum, op);
}

/// Finds prefixes as look_back does, for tiles that are dealt out among devices. It combines the totals of whole chunks
/// from all devices, and the totals of earlier tiles in the tile's own chunk.
template <class T, class Op>
class look_back_over_chunks {
 public:
  __device__ look_back_over_chunks(const tile_total<T>* tiles, const tile_total<T>* chunks, const scan_deal& deal,
                                   unsigned launch, Op op)
      : tiles_(tiles), chunks_(chunks), deal_(deal), launch_(launch), op_(op), before_(op.identity()) {}

  /// Returns the combination of all elements before tile `place` of chunk `index` of a problem. first_chunk: the number
  /// of the problem's first chunk. first_tile: the number of the chunk's first tile.
  __device__ T prefix(uint32_t first_chunk, uint32_t index, uint64_t first_tile, unsigned place, unsigned lane) {
    if (first_chunk != first_) {
      first_ = first_chunk;
      known_ = 0;
      before_ = op_.identity();
    }
    // The loop loads the totals of the earlier tiles in this tile's chunk together with the totals of earlier chunks,
    // so that the warp waits for one latency instead of two.
    bits_of<T> of_tile[each], of_chunk;
    unsigned count;
    bool all;
    do {
      count = index - known_ < warp_size ? index - known_ : warp_size;
      all = lane >= count || chunks_[deal_.place_of_total(first_ + known_ + lane)].load(of_chunk, launch_);
#pragma unroll
      for (unsigned i = 0; i < each; ++i)
        if (lane * each + i < place) all &= tiles_[first_tile + lane * each + i].load(of_tile[i], launch_);
    } while (!__all_sync(all_lanes, all));
    T in_chunk = op_.identity();
#pragma unroll
    for (unsigned i = 0; i < each; ++i)
      if (lane * each + i < place) in_chunk = op_(in_chunk, bit_cast<T>(of_tile[i]));
    in_chunk = warp_reduce(in_chunk, op_);
    add(of_chunk, count);
    while (known_ < index) {
      count = index - known_ < warp_size ? index - known_ : warp_size;
      do {
        all = lane >= count || chunks_[deal_.place_of_total(first_ + known_ + lane)].load(of_chunk, launch_);
      } while (!__all_sync(all_lanes, all));
      add(of_chunk, count);
    }
    return op_(before_, in_chunk);
  }

 private:
  static constexpr unsigned each = tiles_per_group / warp_size;

  /// Adds the totals of the next `count` chunks; lane i holds the total of the i-th of them.
  __device__ __forceinline__ void add(bits_of<T> value, unsigned count) {
    for (unsigned i = 0; i < count; ++i) before_ = op_(before_, shuffle(bit_cast<T>(value), i));
    known_ += count;
  }

  const tile_total<T>* tiles_;
  const tile_total<T>* chunks_;
  const scan_deal& deal_;
  unsigned launch_;
  Op op_;
  uint32_t first_ = ~uint32_t{0};
  uint32_t known_ = 0;  ///< before_ combines everything before this chunk of the problem
  T before_;
};

}  // namespace hpe::kernels::gpu
