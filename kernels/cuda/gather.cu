// The kernels of gather and scatter for GPUs.

#include "kernels/cuda/warp.cuh"
#include "kernels/gather.h"

namespace hpe::kernels::gpu {

namespace {

struct two_uint4 {
  uint4 low, high;
};

/// Calls body(element, index) with arguments of the types whose sizes are in `types`.
template <class Body>
__device__ __forceinline__ void with_types(const gather_types& types, const Body& body) {
  const auto with_index = [&](auto index) {
    switch (types.element) {
      case 4: return body(uint32_t{}, index);
      case 8: return body(uint2{}, index);
      case 16: return body(uint4{}, index);
      default: return body(two_uint4{}, index);
    }
  };
  types.index == 4 ? with_index(uint32_t{}) : with_index(uint64_t{});
}

__device__ __forceinline__ void report(gather_status* status, uint64_t place) {
  atomicMin(reinterpret_cast<unsigned long long*>(&status->first_out_of_range), static_cast<unsigned long long>(place));
}

// Loads a value that is used once, so that it does not evict the table from the second-level cache.
template <class T>
__device__ __forceinline__ T load_once(const T* from) {
  return __ldcs(from);
}
__device__ __forceinline__ uint64_t load_once(const uint64_t* from) {
  return __ldcs(reinterpret_cast<const unsigned long long*>(from));
}
__device__ __forceinline__ two_uint4 load_once(const two_uint4* from) {
  return {__ldcs(&from->low), __ldcs(&from->high)};
}
template <class T>
__device__ __forceinline__ void store_once(T* to, const T& value) {
  __stcs(to, value);
}
__device__ __forceinline__ void store_once(two_uint4* to, const two_uint4& value) {
  __stcs(&to->low, value.low);
  __stcs(&to->high, value.high);
}

template <class Element, class Index>
__device__ __forceinline__ void access_stream(const gather_access_parameters& p, const gather_stream& s) {
  const uint64_t first = s.begin != nullptr ? *s.begin : 0, count = (s.begin != nullptr ? *s.end : s.count) - first;
  const Index* const indices = static_cast<const Index*>(s.indices) + first;
  Element* const values = static_cast<Element*>(s.values) + first;
  Element* const table = static_cast<Element*>(p.table);
  const bool scatter = p.types.way == gather_way::scatter;
  for (uint64_t i = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += uint64_t{gridDim.x} * blockDim.x) {
    const uint64_t x = load_once(indices + i);
    if (x - p.from >= p.to - p.from) {
      if (x >= p.table_count && p.status != nullptr) report(p.status, p.first_place + first + i);
    } else if (!scatter) {
      store_once(values + i, table[x]);
    } else if (p.winners == nullptr || p.winners[x] == p.first_place + first + i + 1) {
      table[x] = load_once(values + i);
    }
  }
}

template <class Index>
__device__ void mark(const gather_mark_parameters& p) {
  const Index* const indices = static_cast<const Index*>(p.indices);
  for (uint64_t i = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < p.count;
       i += uint64_t{gridDim.x} * blockDim.x) {
    const uint64_t x = indices[i];
    if (x < p.table_count)
      atomicMax_system(reinterpret_cast<unsigned long long*>(p.winners + x),
                       static_cast<unsigned long long>(p.first_place + i + 1));
  }
}

constexpr uint32_t most_streams = gather_most_chunks_gpu + 1;

template <class Index>
__device__ void count_part(const gather_partition& p, uint32_t* counts) {
  for (uint32_t c = threadIdx.x; c <= p.chunks.count; c += blockDim.x) counts[c] = 0;
  __syncthreads();
  const Index* const indices = static_cast<const Index*>(p.indices);
  const uint64_t end = p.part_begin(blockIdx.x + 1);
  for (uint64_t i = p.part_begin(blockIdx.x) + threadIdx.x; i < end; i += blockDim.x) {
    const uint32_t c = p.chunks.of(indices[i]);
    atomicAdd(counts + c, 1U);
    if (c == p.chunks.count) report(p.status, p.first_place + i);
  }
  __syncthreads();
  for (uint32_t c = threadIdx.x; c <= p.chunks.count; c += blockDim.x)
    p.offsets[uint64_t{c} * p.parts + blockIdx.x] = counts[c];
}

constexpr uint32_t move_warps = gather_move_threads / warp_size;
struct move_memory {
  uint64_t cursors[most_streams];
  // By warp and stream: number of elements of the tile. Element `streams` counts positions beyond the end of the part.
  uint32_t of_warp[move_warps][most_streams + 1];
};

/// Moves the indices of one part to the streams, and for a scatter also their values. If m.back is set, moves values
/// from the streams back to the caller's order. The position of an element in its stream depends only on the indices of
/// the part: a part is processed in tiles, and in each step, each warp takes 32 consecutive indices of the tile.
/// Therefore, a later call that moves values back finds the positions to which an earlier call moved them.
template <class Element, class Index>
__device__ __forceinline__ void move_part(const gather_move_parameters& m, move_memory& shared) {
  constexpr uint32_t each = gather_move_each(sizeof(Element)), warps = move_warps;
  auto& cursors = shared.cursors;
  auto& of_warp = shared.of_warp;
  const gather_partition& p = m.partition;
  const uint32_t streams = p.chunks.count + 1, lane = lane_number(), warp = threadIdx.x / warp_size;
  const Index* const indices = static_cast<const Index*>(p.indices);
  Element* const values = static_cast<Element*>(m.values);
  Element* const stream_values = static_cast<Element*>(m.stream_values);
  for (uint32_t c = threadIdx.x; c < streams; c += blockDim.x) {
    cursors[c] = p.offsets[uint64_t{c} * p.parts + blockIdx.x];
    for (uint32_t w = 0; w < warps; ++w) of_warp[w][c] = 0;
  }
  __syncthreads();
  const uint64_t end = p.part_begin(blockIdx.x + 1);
  for (uint64_t tile = p.part_begin(blockIdx.x); tile < end; tile += gather_move_threads * each) {
    const uint64_t begin = tile + warp * warp_size * each + lane;
    uint64_t index[each];
    uint32_t chunk[each], rank[each];
#pragma unroll
    for (uint32_t k = 0; k < each; ++k) {
      const uint64_t i = begin + k * warp_size;
      index[k] = i < end ? indices[i] : 0;
      chunk[k] = i < end ? p.chunks.of(index[k]) : streams;
    }
#pragma unroll
    for (uint32_t k = 0; k < each; ++k) {
      const unsigned alike = __match_any_sync(all_lanes, chunk[k]), before = alike & ((1U << lane) - 1);
      rank[k] = of_warp[warp][chunk[k]] + __popc(before);
      __syncwarp();
      if (before == 0) of_warp[warp][chunk[k]] += __popc(alike);
      __syncwarp();
    }
    __syncthreads();
    // Replaces the counts by the offsets of warps. Each thread keeps the totals of its streams in registers until all
    // threads have used the cursors.
    constexpr uint32_t own = (most_streams + gather_move_threads - 1) / gather_move_threads;
    uint32_t total[own];
#pragma unroll
    for (uint32_t o = 0; o < own; ++o) {
      total[o] = 0;
      const uint32_t c = threadIdx.x + o * gather_move_threads;
      for (uint32_t w = 0; w < warps && c < streams; ++w) {
        const uint32_t here = of_warp[w][c];
        of_warp[w][c] = total[o];
        total[o] += here;
      }
    }
    __syncthreads();
    uint64_t place[each];
#pragma unroll
    for (uint32_t k = 0; k < each; ++k)
      place[k] = chunk[k] < streams ? cursors[chunk[k]] + of_warp[warp][chunk[k]] + rank[k] : 0;
    if (m.back != 0) {
      Element element[each];
#pragma unroll
      for (uint32_t k = 0; k < each; ++k)
        if (chunk[k] < p.chunks.count) element[k] = stream_values[place[k]];
#pragma unroll
      for (uint32_t k = 0; k < each; ++k)
        if (chunk[k] < p.chunks.count) store_once(values + begin + k * warp_size, element[k]);
    } else {
#pragma unroll
      for (uint32_t k = 0; k < each; ++k) {
        if (chunk[k] == streams) continue;
        static_cast<Index*>(m.stream_indices)[place[k]] = static_cast<Index>(index[k]);
        if (p.types.way == gather_way::scatter) stream_values[place[k]] = load_once(values + begin + k * warp_size);
      }
    }
    __syncthreads();
#pragma unroll
    for (uint32_t o = 0; o < own; ++o) {
      const uint32_t c = threadIdx.x + o * gather_move_threads;
      if (c >= streams) continue;
      cursors[c] += total[o];
      for (uint32_t w = 0; w < warps; ++w) of_warp[w][c] = 0;
    }
    __syncthreads();
  }
}

}  // namespace

}  // namespace hpe::kernels::gpu

using namespace hpe::kernels;

extern "C" __global__ void __launch_bounds__(gather_access_threads)
    gather_access(const __grid_constant__ gather_access_parameters p) {
  gpu::with_types(p.types, [&](auto e, auto i) {
    for (uint32_t s = 0; s < p.stream_count; ++s) gpu::access_stream<decltype(e), decltype(i)>(p, p.streams[s]);
  });
}

extern "C" __global__ void gather_mark(const gather_mark_parameters p) {
  p.index_bytes == 4 ? gpu::mark<uint32_t>(p) : gpu::mark<uint64_t>(p);
}

extern "C" __global__ void gather_count(const gather_partition p) {
  __shared__ uint32_t counts[gpu::most_streams];
  p.types.index == 4 ? gpu::count_part<uint32_t>(p, counts) : gpu::count_part<uint64_t>(p, counts);
}

extern "C" __global__ void __launch_bounds__(gather_offsets_threads) gather_offsets(const gather_partition p) {
  // Each thread adds up consecutive counts.
  __shared__ uint64_t sums[gather_offsets_threads];
  const uint64_t all = (uint64_t{p.chunks.count} + 1) * p.parts, run = (all + blockDim.x - 1) / blockDim.x;
  const uint64_t begin = threadIdx.x * run < all ? threadIdx.x * run : all, end = begin + run < all ? begin + run : all;
  uint64_t sum = 0;
  for (uint64_t i = begin; i < end; ++i) sum += p.offsets[i];
  sums[threadIdx.x] = sum;
  for (uint32_t distance = 1; distance < blockDim.x; distance *= 2) {
    __syncthreads();
    const uint64_t before = threadIdx.x >= distance ? sums[threadIdx.x - distance] : 0;
    __syncthreads();
    sums[threadIdx.x] += before;
  }
  uint64_t at = sums[threadIdx.x] - sum;
  for (uint64_t i = begin; i < end; ++i) {
    const uint64_t here = p.offsets[i];
    p.offsets[i] = at;
    at += here;
  }
}

extern "C" __global__ void __launch_bounds__(gather_move_threads)
    gather_move(const __grid_constant__ gather_move_parameters m) {
  __shared__ gpu::move_memory shared;
  gpu::with_types(m.partition.types, [&](auto e, auto i) { gpu::move_part<decltype(e), decltype(i)>(m, shared); });
}

extern "C" __global__ void gather_random(const gather_random_parameters p) {
  for (uint64_t i = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < p.count;
       i += uint64_t{gridDim.x} * blockDim.x) {
    if (p.index_bytes == 4)
      static_cast<uint32_t*>(p.indices)[i] = static_cast<uint32_t>(p.at(i));
    else
      static_cast<uint64_t*>(p.indices)[i] = p.at(i);
  }
}
