#pragma once

/// One pass of a sort by radix on a GPU, as in A. Adinets and D. Merrill, "Onesweep: A Faster Least Significant Digit
/// Radix Sort for GPUs" (2022): a block reads each tile once, orders the tile by its digits in shared memory, and
/// writes it. To find how many elements of each bin are in earlier tiles, a block looks back at the sums of those
/// tiles.

#include <cub/block/block_radix_rank.cuh>

#include "kernels/radix_pass_parameters.h"

namespace hpe::kernels::gpu {

template <class Key, unsigned keys>
struct alignas(sizeof(Key) * keys) radix_element {
  Key words[keys];
};

/// Returns the bin of an element in the passes after the first. The asm keeps the compiler from storing an element's
/// bin for later use, because stored bins would need more registers than a thread has.
template <class Key>
struct later_bin {
  uint32_t shift, mask;
  __device__ __forceinline__ uint32_t operator()(Key number) const {
    uint32_t bin = uint32_t(number >> shift) & mask;
    asm volatile("" : "+r"(bin));
    return bin;
  }
  [[nodiscard]] __device__ __forceinline__ uint32_t last() const { return mask; }
};

/// The splitters by which the elements of one tile are compared. The greatest key is above all splitters, because it
/// also fills places without an element, which must come after all elements.
template <class Key>
struct tile_splitters {
  Key least[radix_most_devices];  ///< for each splitter, the least key above it
  uint32_t count;

  /// Sets the splitters of a tile. At least threads 0 to radix_most_devices - 1 must call it.
  __device__ void set(const radix_pass_parameters& p, uint64_t tile_begin) {
    const uint32_t i = threadIdx.x;
    if (i == 0) count = p.devices - 1;
    if (i + 1 >= p.devices) return;
    const Key key = Key(p.state->splitter_keys[i]);
    const bool above = tile_begin >= p.state->splitter_places[i] || key == Key(~Key{0});
    least[i] = key + (above ? 0 : 1);
  }
  __device__ __forceinline__ uint32_t range_of(Key number) const {
    uint32_t result = 0;
    for (uint32_t i = 0; i < count; ++i) result += number >= least[i] ? 1 : 0;
    return result;
  }
};

/// Returns the bin of an element in the first pass.
template <class Key>
struct first_bin {
  const tile_splitters<Key>& splitters;
  uint32_t bits;
  __device__ __forceinline__ uint32_t operator()(Key number) const {
    return splitters.range_of(number) << bits | (uint32_t(number) & ((1U << bits) - 1));
  }
  [[nodiscard]] __device__ __forceinline__ uint32_t last() const { return ((splitters.count + 1) << bits) - 1; }
};

/// The numbers of elements in each bin of each tile. A word is 0 until its tile is counted. Then it contains the number
/// of the tile alone (marked `alone`), and later the sum of all tiles up to this one (marked `complete`).
namespace tile_sum {
inline constexpr uint32_t alone = 1U << 30, complete = 1U << 31, value = alone - 1;
__device__ __forceinline__ void store(uint32_t* where, uint32_t word) {
  asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(__cvta_generic_to_global(where)), "r"(word) : "memory");
}
__device__ __forceinline__ uint32_t load(const uint32_t* where) {
  uint32_t word;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(word) : "l"(__cvta_generic_to_global(where)) : "memory");
  return word;
}
/// For each existing bin in [first, first + each): sets `before` to the number of the bin's elements in all tiles
/// before tile `tile`, and stores the complete sum of this tile, which has `own` elements in the bin. A thread reads
/// several sums at a time, because each read takes as long as the ranking of some elements.
template <unsigned each>
__device__ __forceinline__ void look_back(uint32_t* sums, uint32_t tile, uint32_t bins, uint32_t first,
                                          const uint32_t (&own)[each], uint32_t (&before)[each]) {
  constexpr uint32_t at_once = 4;
  uint32_t left[each];  // tiles whose sums are not added yet
  bool open[each], any = true;
#pragma unroll
  for (unsigned u = 0; u < each; ++u) {
    before[u] = 0;
    left[u] = tile;
    open[u] = first + u < bins;
  }
  while (any) {
    uint32_t words[each][at_once];
#pragma unroll
    for (unsigned u = 0; u < each; ++u)
#pragma unroll
      for (uint32_t i = 0; i < at_once; ++i)
        words[u][i] = open[u] && i < left[u] ? load(sums + uint64_t{left[u] - 1 - i} * bins + first + u) : complete;
    any = false;
#pragma unroll
    for (unsigned u = 0; u < each; ++u) {
      bool goes_on = true;
#pragma unroll
      for (uint32_t i = 0; i < at_once; ++i) {
        goes_on = goes_on && words[u][i] != 0;
        if (!goes_on) continue;
        before[u] += words[u][i] & value;
        --left[u];
        goes_on = (words[u][i] & complete) == 0;
        if (goes_on || !open[u]) continue;
        store(sums + uint64_t{tile} * bins + first + u, complete | (before[u] + own[u]));
        open[u] = false;
      }
      any = any || open[u];
    }
  }
}
}  // namespace tile_sum

/// Sets the sums of `tiles` tiles to zero.
__device__ __forceinline__ void clear_sums(uint32_t* sums, uint32_t tiles, uint32_t bins) {
  auto* const quads = reinterpret_cast<uint4*>(sums);
  for (uint64_t i = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < uint64_t{tiles} * bins / 4;
       i += uint64_t{gridDim.x} * blockDim.x)
    quads[i] = {};
}

template <class Element, class Key, unsigned bits>
struct radix_pass_memory {
  static constexpr unsigned items = radix_tile_of(sizeof(Element)) / radix_pass_threads;
  using ranking = cub::BlockRadixRankMatchEarlyCounts<radix_pass_threads, bits, false, cub::BLOCK_SCAN_RAKING_MEMOIZE,
                                                      cub::WARP_MATCH_ANY, 1>;
  union {
    Element elements[items * radix_pass_threads];
    typename ranking::TempStorage ranks;
  };
  uint64_t offsets[1 << bits];
  tile_splitters<Key> splitters;
  uint32_t tile;
  radix_sequence run;
  uint32_t tile_of_run;
};

/// Computes the bins of keys through the interface that CUB requires.
template <radix_order order, class Bin>
struct digit_extractor {
  const Bin& bin_of;
  template <class Key>
  __device__ __forceinline__ uint32_t Digit(Key key) const {
    return bin_of(radix_of(key, order));
  }
};

/// The key for which radix_of returns the greatest number.
template <radix_order order, class Key>
inline constexpr Key greatest_key = order == radix_order::without_sign ? Key(~Key{0}) : Key(Key(~Key{0}) >> 1);

/// Orders tile number `tile` of the pass, which has the elements [part.begin, part.end), and writes it.
template <radix_order order, class Element, class Key, unsigned bits, class Bin>
__device__ __forceinline__ void radix_pass_tile(const radix_pass_parameters& p, const radix_sequence& part,
                                                uint32_t tile, const Bin& bin_of,
                                                radix_pass_memory<Element, Key, bits>& shared) {
  using memory = radix_pass_memory<Element, Key, bits>;
  using ranking = typename memory::ranking;
  constexpr unsigned items = memory::items, bins = 1U << bits, each = ranking::BINS_TRACKED_PER_THREAD;
  const auto count = uint32_t(part.end - part.begin);
  const Element* const from = static_cast<const Element*>(p.from) + part.begin;
  const uint32_t first = threadIdx.x / 32 * 32 * items + threadIdx.x % 32;
  const bool whole = count == items * radix_pass_threads;

  Element elements[items];
#pragma unroll
  for (unsigned u = 0; u < items; ++u) {
    if (whole || first + 32 * u < count)
      elements[u] = from[first + 32 * u];
    else
      elements[u].words[0] = greatest_key<order, Key>;
  }
  Key keys[items];
#pragma unroll
  for (unsigned u = 0; u < items; ++u) keys[u] = elements[u].words[0];

  uint32_t own[each];
  int ranks[items], within[each];
  const digit_extractor<order, Bin> extractor{bin_of};
  ranking(shared.ranks).RankKeys(keys, ranks, extractor, within, [&](int(&counts)[each]) {
#pragma unroll
    for (unsigned u = 0; u < each; ++u) {
      const uint32_t bin = threadIdx.x * each + u;
      own[u] = uint32_t(counts[u]) - (bin == bin_of.last() ? items * radix_pass_threads - count : 0);
      if (bin < bins) tile_sum::store(p.sums + uint64_t{tile} * bins + bin, tile_sum::alone | own[u]);
    }
  });
  __syncthreads();
#pragma unroll
  for (unsigned u = 0; u < items; ++u) shared.elements[ranks[u]] = elements[u];
  uint32_t before[each];
  tile_sum::look_back(p.sums, tile, bins, threadIdx.x * each, own, before);
#pragma unroll
  for (unsigned u = 0; u < each; ++u) {
    const uint32_t bin = threadIdx.x * each + u;
    if (bin < bins) shared.offsets[bin] = p.state->offsets[p.pass][bin] + before[u] - within[u];
  }
  __syncthreads();
  Element* const to = static_cast<Element*>(p.to);
#pragma unroll
  for (unsigned u = 0; u < items; ++u) {
    const uint32_t place = threadIdx.x + u * radix_pass_threads;
    const Element e = shared.elements[place];
    const uint64_t offset = shared.offsets[extractor.Digit(e.words[0])];
    if (whole || place < count) to[offset + place] = e;
    __syncwarp();  // otherwise, the compiler needs more registers than a thread has
  }
}

/// Returns the number of tiles of the input of pass `pass`.
__device__ __forceinline__ uint32_t tiles_of_pass(const radix_pass_parameters& p, uint32_t pass) {
  if (pass == 1) return p.state->run_tiles[p.state->run_count];
  return (pass == 0 ? p.own() : p.state->range).tiles(p.tile());
}

template <radix_order order, class Element, class Key, unsigned bits, bool first>
__device__ __forceinline__ void radix_pass(const radix_pass_parameters& p) {
  __shared__ radix_pass_memory<Element, Key, bits> shared;
  const radix_pass_state& state = *p.state;
  constexpr uint32_t tile_elements = radix_tile_of(sizeof(Element));
  const radix_digits_of_passes digits{sizeof(Key), p.devices};
  const uint32_t tiles = tiles_of_pass(p, p.pass);
  if (p.next_sums != nullptr) clear_sums(p.next_sums, tiles_of_pass(p, p.pass + 1), digits.bins(p.pass + 1));
  const uint32_t shift = digits.shift(p.pass), mask = (1U << digits.bits(p.pass)) - 1;
  for (;;) {  // one iteration if there is a block for each tile
    if (threadIdx.x == 0) shared.tile = atomicAdd(&p.state->next_tile[p.pass], 1);
    __syncthreads();
    const uint32_t tile = shared.tile;
    if (tile >= tiles) return;
    if (p.pass == 1) {
      for (uint32_t r = threadIdx.x; r < state.run_count; r += radix_pass_threads)
        if (state.run_tiles[r] <= tile && tile < state.run_tiles[r + 1]) {
          shared.run = state.runs[r];
          shared.tile_of_run = tile - state.run_tiles[r];
        }
    } else if (threadIdx.x == 0) {
      shared.run = first ? p.own() : state.range;
      shared.tile_of_run = tile;
    }
    __syncthreads();
    const radix_sequence part = shared.run.part(shared.tile_of_run, tile_elements);
    if constexpr (first) {
      shared.splitters.set(p, part.begin);
      __syncthreads();
      radix_pass_tile<order>(p, part, tile, first_bin<Key>{shared.splitters, digits.low_bits()}, shared);
    } else {
      radix_pass_tile<order>(p, part, tile, later_bin<Key>{shift, mask}, shared);
    }
    if (tiles <= gridDim.x) return;
    __syncthreads();
  }
}

}  // namespace hpe::kernels::gpu
