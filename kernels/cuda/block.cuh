#pragma once

/// Scans over the warps of one block.

#include "kernels/cuda/warp.cuh"

namespace hpe::kernels::gpu {

/// Shared memory for one value of each warp: at most 32 elements for a block (S in Dieguez et al., section 3.1).
template <class T>
struct block_memory {
  T of_warp[warp_size];
};

/// The result of block_scan for one warp.
template <class T>
struct block_prefix {
  T before;  ///< the combination of the totals of the warps before this one
  T all;     ///< the combination of the totals of all warps
};

/// Combines the totals of the block's warps. All threads of the block must call this function, with the total of their
/// warp.
template <class T, class Op>
__device__ __forceinline__ block_prefix<T> block_scan(T total, block_memory<T>& shared, Op op) {
  const unsigned lane = lane_number(), warp = threadIdx.x / warp_size, warps = (blockDim.x + warp_size - 1) / warp_size;
  if (is_leader()) shared.of_warp[warp] = total;
  __syncthreads();
  const T scanned = warp_scan(lane < warps ? shared.of_warp[lane] : op.identity(), op, lane);
  __syncthreads();  // so that the caller may use `shared` again
  const T before = shuffle(scanned, warp == 0 ? 0 : warp - 1);
  return {warp == 0 ? op.identity() : before, shuffle(scanned, warp_size - 1)};
}

}  // namespace hpe::kernels::gpu
