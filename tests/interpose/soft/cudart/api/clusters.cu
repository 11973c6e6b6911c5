#include <cooperative_groups.h>

#include "kernels.h"

namespace {

namespace cg = cooperative_groups;

// Writes 100 times the number that the next block of the cluster has stored in its shared memory, plus the cluster's
// size.
__device__ void tell(int* out) {
  __shared__ int mine;
  const cg::cluster_group cluster = cg::this_cluster();
  mine = static_cast<int>(blockIdx.x);
  cluster.sync();
  const unsigned next = (cluster.block_rank() + 1) % cluster.num_blocks();
  out[blockIdx.x] = *cluster.map_shared_rank(&mine, next) * 100 + static_cast<int>(cluster.num_blocks());
  cluster.sync();
}

__global__ void any_cluster(int* out) { tell(out); }
__global__ void __cluster_dims__(2, 1, 1) cluster_of_two(int* out) { tell(out); }
__global__ void __cluster_dims__() some_cluster(int* out) { tell(out); }
__global__ void __launch_bounds__(64, 1, 4) small_clusters(int* out) { tell(out); }

}  // namespace

const void* kernel_any_cluster() { return reinterpret_cast<const void*>(any_cluster); }
const void* kernel_cluster_of_two() { return reinterpret_cast<const void*>(cluster_of_two); }
const void* kernel_some_cluster() { return reinterpret_cast<const void*>(some_cluster); }
const void* kernel_small_clusters() { return reinterpret_cast<const void*>(small_clusters); }
