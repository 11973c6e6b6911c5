// The kernels of sparse matrices, graphs and hash tables for GPUs.

#include "kernels/cuda/warp.cuh"
#include "kernels/sparse_parameters.h"

namespace hpe::kernels::gpu {

namespace {

/// Returns the number of this thread's group of `lanes` threads.
__device__ __forceinline__ uint64_t first_group(uint32_t lanes) {
  return (uint64_t{blockIdx.x} * blockDim.x + threadIdx.x) / lanes;
}
__device__ __forceinline__ uint64_t groups(uint32_t lanes) { return uint64_t{gridDim.x} * blockDim.x / lanes; }

/// Returns the sum of the products of elements k, k + lanes, ... of a row with the elements of x, for at most `each`
/// elements of the row. All loads of one kind are issued together, also if the row has fewer than `each` elements.
template <class T, uint32_t lanes, uint32_t each>
__device__ __forceinline__ T sum_of_some(const sparse_multiply_parameters& p, const T* values, const T* x, uint32_t k,
                                         uint32_t end) {
  uint64_t from[each];
  T value[each];
  // Data that is used once is loaded in a way that does not evict x from the caches.
#pragma unroll
  for (uint32_t j = 0; j < each; ++j) {
    const uint32_t at = k + j * lanes;
    from[j] = at;
    if (at < end && p.columns != nullptr) from[j] = __ldcs(p.columns + at);
    value[j] = at < end ? __ldcs(values + at) : 0;
  }
  T sum = 0;
#pragma unroll
  for (uint32_t j = 0; j < each; ++j)
    if (k + j * lanes < end) sum += value[j] * __ldg(x + from[j]);
  return sum;
}

template <class T, uint32_t lanes, uint32_t each>
__device__ __forceinline__ void multiply(const sparse_multiply_parameters& p) {
  const T* const values = static_cast<const T*>(p.values);
  const T* const x = static_cast<const T*>(p.x);
  T* const y = static_cast<T*>(p.y);
  const uint32_t lane = threadIdx.x % lanes;
  // All lanes of a warp stay in the loop until the warp's last row, because the shuffles need all lanes.
  const uint64_t step = groups(lanes), rows = (p.rows + warp_size - 1) / warp_size * warp_size;
  for (uint64_t row = first_group(lanes); row < rows; row += step) {
    T sum = 0;
    const uint32_t begin = row < p.rows ? __ldg(p.first + row) : 0, end = row < p.rows ? __ldg(p.first + row + 1) : 0;
    for (uint32_t k = begin + lane; k < end; k += each * lanes)
      sum += sum_of_some<T, lanes, each>(p, values, x, k, end);
#pragma unroll
    for (uint32_t distance = lanes / 2; distance > 0; distance /= 2)
      sum += __shfl_down_sync(all_lanes, sum, distance, lanes);
    if (lane == 0 && row < p.rows) y[row] = sum;
  }
}

template <class T, uint32_t each>
__device__ __forceinline__ void multiply_with_lanes(const sparse_multiply_parameters& p) {
  switch (p.lanes) {
    case 1: return multiply<T, 1, each>(p);
    case 2: return multiply<T, 2, each>(p);
    case 4: return multiply<T, 4, each>(p);
    case 8: return multiply<T, 8, each>(p);
    case 16: return multiply<T, 16, each>(p);
    default: return multiply<T, 32, each>(p);
  }
}

template <class T>
__device__ __forceinline__ void multiply_of_type(const sparse_multiply_parameters& p) {
  p.each <= 2 ? multiply_with_lanes<T, 2>(p) : multiply_with_lanes<T, 4>(p);
}

/// Returns, for each active thread whose `wanted` is true, the position at which the thread appends an element. The
/// positions begin at the old value of `*count`. The active threads of a warp increment `*count` by one atomic
/// operation.
__device__ __forceinline__ uint32_t append(uint32_t* count, bool wanted) {
  const unsigned active = __activemask(), all = __ballot_sync(active, wanted);
  if (!wanted) return 0;
  const unsigned leader = __ffs(all) - 1;
  uint32_t begin = 0;
  if (lane_number() == leader) begin = atomicAdd(count, __popc(all));
  begin = __shfl_sync(all, begin, leader);
  return begin + __popc(all & ((1U << lane_number()) - 1));
}

}  // namespace

}  // namespace hpe::kernels::gpu

using namespace hpe::kernels;

extern "C" __global__ void __launch_bounds__(sparse_threads)
    sparse_multiply(const __grid_constant__ sparse_multiply_parameters p) {
  p.element == 4 ? gpu::multiply_of_type<float>(p) : gpu::multiply_of_type<double>(p);
}

extern "C" __global__ void __launch_bounds__(sparse_threads)
    graph_step(const __grid_constant__ graph_step_parameters p) {
  const uint32_t count = p.counts[p.depth], lane = threadIdx.x % p.lanes;
  for (uint64_t i = gpu::first_group(p.lanes); i < count; i += gpu::groups(p.lanes)) {
    const uint32_t vertex = p.frontier[i];
    for (uint32_t k = p.first[vertex] + lane; k < p.first[vertex + 1]; k += p.lanes) {
      const uint32_t neighbour = p.neighbours[k];
      const bool is_new = p.levels[neighbour] == graph_unreached &&
                          atomicCAS(p.levels + neighbour, graph_unreached, p.depth + 1) == graph_unreached;
      const uint32_t place = gpu::append(p.counts + p.depth + 1, is_new);
      if (is_new) p.next[place] = neighbour;
    }
  }
}

extern "C" __global__ void __launch_bounds__(sparse_threads)
    hash_slots(const __grid_constant__ hash_slots_parameters p) {
  for (uint64_t i = gpu::first_group(1); i < p.count; i += gpu::groups(1))
    p.indices[i] = hash_slot(p.entries != nullptr ? hash_key_of(p.entries[i]) : p.keys[i], p.level, p.slots);
}

extern "C" __global__ void __launch_bounds__(sparse_threads)
    hash_settle(const __grid_constant__ hash_settle_parameters p) {
  for (uint64_t i = gpu::first_group(1); i < p.count; i += gpu::groups(1)) {
    const uint64_t entry = p.entries[i];
    const bool lost = hash_key_of(p.found[i]) != hash_key_of(entry);
    const uint32_t place = gpu::append(p.rest_count, lost);
    if (lost) p.rest[place] = entry;
  }
}

extern "C" __global__ void __launch_bounds__(sparse_threads)
    hash_match(const __grid_constant__ hash_match_parameters p) {
  for (uint64_t i = gpu::first_group(1); i < p.count; i += gpu::groups(1)) {
    const uint32_t key = p.keys[i], place = p.places != nullptr ? p.places[i] : static_cast<uint32_t>(i);
    const uint64_t found = p.found[i];
    const bool here = hash_key_of(found) == key && found != hash_empty, more = !here && found != hash_empty;
    if (!more) p.results[place] = here ? hash_value_of(found) : p.missing;
    const uint32_t rest = gpu::append(p.rest_count, more);
    if (more) {
      p.rest_keys[rest] = key;
      p.rest_places[rest] = place;
    }
  }
}
