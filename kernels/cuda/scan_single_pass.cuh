#pragma once

/// Scans in one pass: every element is read once and written once.
///
/// The launch has as many blocks as can run at the same time (as in Liu and Aluru, LightScan, section 4). Blocks take
/// tickets for tiles in order, so that a tile for which other blocks wait always belongs to a running block. The warps
/// of a block have different tasks. The warps pass tiles to each other through stages in shared memory; a stage holds
/// one tile, and the stages form a ring.
///
/// The loader takes tickets and starts bulk copies into free stages, several tiles ahead. The reducer warps combine the
/// elements of each segment of a tile as soon as the tile is loaded. The publisher warp combines the totals of the
/// segments, and publishes the tile's total to all blocks (look_back.cuh). The look-back warp waits for the totals of
/// earlier tiles and combines them. Each scanner warp scans one segment, starting from the results of the publisher and
/// the look-back warp, and writes the result.
///
/// Therefore, totals are published long before other blocks need them, and loads from memory never pause.

#include <stdint.h>

#include "kernels/cuda/bulk_copy.cuh"
#include "kernels/cuda/look_back.cuh"
#include "kernels/cuda/scan_tile.cuh"
#include "kernels/scan.h"

namespace hpe::kernels::gpu {

/// The number of stages and of warps of a block. The bytes of a stage must be a multiple of 512 for each scanner warp.
template <unsigned ring, unsigned bytes, unsigned scanner_warps, unsigned reducer_warps>
struct single_pass_shape {
  static constexpr unsigned stages = ring, stage_bytes = bytes, scanners = scanner_warps, reducers = reducer_warps;
  static constexpr unsigned threads = warp_size * (3 + reducers + scanners);
  template <class T>
  static constexpr unsigned room = stage_bytes / sizeof(T);
};

/// A block's shared memory.
template <class T, class Shape>
struct single_pass_memory {
  struct slot {
    scan_tile tile;
    uint32_t chunk, place;
    window_of_tile window;
    bool last;  ///< the block gets no more tiles
  };
  alignas(128) char stage[Shape::stages][Shape::stage_bytes];
  barrier loaded[Shape::stages], reduced[Shape::stages], known[Shape::stages], free[Shape::stages];
  slot slots[Shape::stages];
  T totals[Shape::stages][Shape::scanners];          ///< the totals of the segments
  T before_segment[Shape::stages][Shape::scanners];  ///< the combination of the tile's earlier segments
  T before_tile[Shape::stages];
  bool heads[Shape::stages][Shape::scanners];  ///< several problems: whether one begins in the segment
};

template <class T, class Op, class Shape, bool several>
class single_pass {
  using memory = single_pass_memory<T, Shape>;
  static constexpr unsigned rows = Shape::stage_bytes / Shape::scanners / (16 * warp_size);
  static constexpr unsigned segment_length = Shape::template room<T> / Shape::scanners;

 public:
  __device__ __forceinline__ single_pass(const scan_single_pass<T>& parameters, Op op, memory& shared)
      : p_(parameters), op_(op), shared_(shared), lane_(lane_number()) {}

  __device__ __forceinline__ void run() {
    if (threadIdx.x == 0) {
      for (unsigned s = 0; s < Shape::stages; ++s) {
        shared_.loaded[s].begin(1);
        shared_.reduced[s].begin(Shape::reducers);
        shared_.known[s].begin(several ? 1 : 2);
        shared_.free[s].begin(Shape::scanners);
      }
      barrier::publish();
    }
    __syncthreads();
    const unsigned warp = threadIdx.x / warp_size;
    if (warp < Shape::scanners) {
      scan_segments(warp);
    } else if (warp < Shape::scanners + Shape::reducers) {
      reduce_segments(warp - Shape::scanners);
    } else if (warp == Shape::scanners + Shape::reducers) {
      publish_totals();
    } else if (warp == Shape::scanners + Shape::reducers + 1) {
      if (!several) find_prefixes();
    } else {
      if (lane_ == 0) load_tiles();
    }
  }

 private:
  /// Calls body(stage, slot, parity) for each tile of this block when the tile is loaded.
  template <class Body>
  __device__ __forceinline__ void for_tiles(Body body) {
    for (unsigned stage = 0, parity = 0;;) {
      shared_.loaded[stage].wait(parity);
      if (shared_.slots[stage].last) return;
      body(stage, shared_.slots[stage], parity);
      if (++stage == Shape::stages) {
        stage = 0;
        parity ^= 1;
      }
    }
  }

  [[nodiscard]] __device__ __forceinline__ dealt_tile take_tile() {
    dealt_tile taken;
    do {
      taken = tile_for(p_.tiling, p_.deal, atomicAdd(&p_.tickets->next, 1ULL));
    } while (taken.none && !taken.last);
    return taken;
  }

  /// Takes a ticket only when a stage is free, because other blocks wait until the ticket's tile has published its
  /// total. If tiles have several problems, no block waits for totals; the ticket is then taken while the previous tile
  /// is being loaded.
  __device__ __forceinline__ void load_tiles() {
    dealt_tile next;
    if constexpr (several) next = take_tile();
    for (unsigned stage = 0, parity = 1;;) {
      shared_.free[stage].wait(parity);  // in the first round, all stages are free
      if constexpr (!several) next = take_tile();
      auto& slot = shared_.slots[stage];
      slot.last = next.last;
      if (slot.last) {
        shared_.loaded[stage].arrive();
        break;
      }
      slot.tile = tile_of(p_.tiling, next.number);
      slot.chunk = next.chunk;
      slot.place = next.place;
      const T* const data = p_.input + slot.tile.begin;
      const unsigned skip = static_cast<unsigned>(reinterpret_cast<uintptr_t>(data) % 16 / sizeof(T));
      slot.window = {skip, skip + slot.tile.count};
      const unsigned bytes = (slot.window.to * sizeof(T) + 15) / 16 * 16;
      shared_.loaded[stage].arrive_expecting(bytes);
      bulk_load(shared_.stage[stage], data - skip, bytes, shared_.loaded[stage]);
      if constexpr (several) next = take_tile();
      if (++stage == Shape::stages) {
        stage = 0;
        parity ^= 1;
      }
    }
    if (atomicAdd(&p_.tickets->left, 1ULL) + 1 == gridDim.x) {
      p_.tickets->next = 0;
      p_.tickets->left = 0;
    }
  }

  /// Returns the index of a stage's element within its problem. Used only for tiles with several problems; such a tile
  /// begins with the first element of a problem.
  [[nodiscard]] __device__ __forceinline__ uint64_t offset(unsigned place, const window_of_tile& window) const {
    const auto length = static_cast<uint32_t>(p_.tiling.length);
    const uint32_t at = place - window.from + vector_length<T> * length;
    return at - static_cast<uint32_t>(at * p_.reciprocal >> 32) * length;
  }

  template <bool whole>
  [[nodiscard]] __device__ __forceinline__ segment<T, Op, rows, whole> segment_of(unsigned stage, unsigned number,
                                                                                  window_of_tile window) const {
    return {reinterpret_cast<const T*>(shared_.stage[stage]), number * segment_length, window, lane_, op_};
  }

  [[nodiscard]] static __device__ __forceinline__ bool is_whole(const window_of_tile& window) {
    return window.from == 0 && window.to == Shape::template room<T>;
  }

  /// Used only for tiles with several problems. Returns whether all problems begin and end at the bounds of segments.
  /// If they do, the scan does not test each element for the beginning of a problem.
  [[nodiscard]] __device__ __forceinline__ bool is_even(const window_of_tile& window) const {
    return window.from == 0 && (window.to | static_cast<unsigned>(p_.tiling.length)) % segment_length == 0;
  }

  __device__ __forceinline__ void reduce_segments(unsigned warp) {
    for_tiles([&](unsigned stage, const typename memory::slot& slot, unsigned) {
      for (unsigned n = warp; n < Shape::scanners; n += Shape::reducers) {
        T total = op_.identity();
        bool head = false;
        if (several && is_even(slot.window)) {
          head = offset(n * segment_length, slot.window) == 0;
          if (slot.window.to > n * segment_length) total = segment_of<true>(stage, n, slot.window).total();
        } else if constexpr (several) {
          const unsigned end = (n + 1) * segment_length;
          const uint64_t since = offset(end, slot.window);
          head = since <= segment_length;
          window_of_tile rest = slot.window;
          if (head && end - since > rest.from) rest.from = static_cast<unsigned>(end - since);
          if (since != 0 && rest.to > n * segment_length) total = segment_of<false>(stage, n, rest).total();
        } else if (is_whole(slot.window)) {
          total = segment_of<true>(stage, n, slot.window).total();
        } else if (slot.window.to > n * segment_length) {
          total = segment_of<false>(stage, n, slot.window).total();
        }
        // All lanes write the same values.
        shared_.totals[stage][n] = total;
        shared_.heads[stage][n] = head;
      }
      __syncwarp();
      if (is_leader()) shared_.reduced[stage].arrive();
    });
  }

  [[nodiscard]] __device__ __forceinline__ tile_total<T>* own_totals() const {
    return static_cast<tile_total<T>*>(p_.totals[p_.deal.device]);
  }
  /// Returns the number of tiles of a chunk, whose first tile has the place `index` in its problem.
  [[nodiscard]] __device__ __forceinline__ unsigned tiles_from(uint64_t index) const {
    const uint64_t rest = p_.tiling.tiles_per_problem - index;
    return rest < p_.deal.chunk ? static_cast<unsigned>(rest) : p_.deal.chunk;
  }

  __device__ __forceinline__ void publish(const typename memory::slot& slot, T total) {
    if (is_leader()) own_totals()[slot.tile.first + slot.tile.index].store(bit_cast<bits_of<T>>(total), p_.launch);
  }

  /// With several devices, the block that has the last tile of a chunk combines the totals of all tiles of the chunk
  /// and writes the result to every device. The other tiles of the chunk have earlier tickets, so that their totals are
  /// certain to be published.
  __device__ __forceinline__ void publish_chunk(const typename memory::slot& slot) {
    const uint64_t begin = slot.tile.index - slot.place;
    const unsigned tiles = tiles_from(begin);
    if (slot.place + 1 != tiles) return;
    const T all = combine_tiles<T>(own_totals() + slot.tile.first + begin, tiles, p_.launch, op_, lane_);
    if (lane_ < p_.deal.devices) {
      auto* const there = static_cast<tile_total<T>*>(p_.chunk_totals[lane_]);
      there[p_.deal.place_of_total(slot.chunk)].store(bit_cast<bits_of<T>>(all), p_.launch);
    }
  }

  __device__ __forceinline__ void publish_totals() {
    for_tiles([&](unsigned stage, const typename memory::slot& slot, unsigned parity) {
      shared_.reduced[stage].wait(parity);
      const bool used = lane_ < Shape::scanners;
      T total = used ? shared_.totals[stage][lane_] : op_.identity();
      if constexpr (several) {
        const unsigned heads = __ballot_sync(all_lanes, used && shared_.heads[stage][lane_]);
        T row[1] = {total};
        warp_segmented_scan_rows(row, {heads}, op_, lane_);
        total = row[0];
      } else {
        total = warp_scan(total, op_, lane_);
        publish(slot, shuffle(total, warp_size - 1));
      }
      const T before = shuffle_up(total, 1);
      if (used) shared_.before_segment[stage][lane_] = lane_ == 0 ? op_.identity() : before;
      __syncwarp();
      const bool chunked = !several && p_.deal.devices > 1;
      typename memory::slot own;
      if (chunked) own = slot;  // a copy, because after the arrival the next tile may replace the slot
      __syncwarp();
      if (is_leader()) shared_.known[stage].arrive();
      if (chunked) publish_chunk(own);
    });
  }

  __device__ __forceinline__ void find_prefixes() {
    if (p_.deal.devices == 1) {
      look_back<T, Op> back(own_totals(), p_.launch, op_);
      find_prefixes_by([&](const typename memory::slot& slot) {
        return slot.tile.index == 0 ? op_.identity() : back.prefix(slot.tile.first, slot.tile.index, lane_);
      });
    } else {
      look_back_over_chunks<T, Op> back(
          own_totals(), static_cast<const tile_total<T>*>(p_.chunk_totals[p_.deal.device]), p_.deal, p_.launch, op_);
      find_prefixes_by([&](const typename memory::slot& slot) {
        const auto index = static_cast<uint32_t>(slot.tile.index) / p_.deal.chunk;
        return back.prefix(slot.chunk - index, index, slot.tile.first + slot.tile.index - slot.place, slot.place,
                           lane_);
      });
    }
  }

  template <class Find>
  __device__ __forceinline__ void find_prefixes_by(Find find) {
    for_tiles([&](unsigned stage, const typename memory::slot& slot, unsigned) {
      const T before = find(slot);
      if (is_leader()) {
        shared_.before_tile[stage] = before;
        shared_.known[stage].arrive();
      }
    });
  }

  __device__ __forceinline__ void scan_segments(unsigned warp) {
    for_tiles([&](unsigned stage, const typename memory::slot& slot, unsigned parity) {
      shared_.known[stage].wait(parity);
      T before = shared_.before_segment[stage][warp];
      if constexpr (!several) before = op_(shared_.before_tile[stage], before);
      T* const output = p_.output + slot.tile.begin - slot.window.from;
      const bool aligned = reinterpret_cast<uintptr_t>(output) % 16 == 0;
      const bool inclusive = p_.inclusive != 0;
      if (several && is_even(slot.window)) {
        if (shared_.heads[stage][warp]) before = op_.identity();
        if (slot.window.to > warp * segment_length)
          segment_of<true>(stage, warp, slot.window).scan(output, before, inclusive, aligned);
      } else if constexpr (several) {
        if (slot.window.to > warp * segment_length)
          segment_of<false>(stage, warp, slot.window)
              .segmented_scan(output, before, inclusive, aligned, p_.tiling.length,
                              [&](unsigned place) { return offset(place, slot.window); });
      } else if (is_whole(slot.window)) {
        segment_of<true>(stage, warp, slot.window).scan(output, before, inclusive, aligned);
      } else if (slot.window.to > warp * segment_length) {
        segment_of<false>(stage, warp, slot.window).scan(output, before, inclusive, aligned);
      }
      __syncwarp();
      if (is_leader()) shared_.free[stage].arrive();
    });
  }

  const scan_single_pass<T>& p_;
  const Op op_;
  memory& shared_;
  const unsigned lane_;
};

}  // namespace hpe::kernels::gpu
