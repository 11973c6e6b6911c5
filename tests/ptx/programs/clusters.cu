// Clusters of blocks, which read and write each other's shared memory.
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
// Each block adds the values in the shared memory of all blocks of its cluster.
extern "C" __global__ void cluster_sum(const int* in, int* out) {
  __shared__ int mine[64];
  const cg::cluster_group cluster = cg::this_cluster();
  mine[threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x];
  cluster.sync();
  int sum = 0;
  for (unsigned r = 0; r < cluster.num_blocks(); ++r) sum += *cluster.map_shared_rank(&mine[threadIdx.x], r);
  cluster.sync();
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum + static_cast<int>(cluster.block_rank()) * 100000;
}
extern "C" __global__ void cluster_places(unsigned* out) {
  __shared__ int word;
  const cg::cluster_group cluster = cg::this_cluster();
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  unsigned* const p = out + (block * blockDim.x + threadIdx.x) * 8;
  p[0] = cluster.block_rank();
  p[1] = cluster.num_blocks();
  p[2] = cluster.thread_rank();
  p[3] = cluster.num_threads();
  p[4] = cluster.block_index().x;
  p[5] = cluster.block_index().y;
  p[6] = cluster.dim_blocks().x;
  p[7] = cluster.query_shared_rank(cluster.map_shared_rank(&word, (p[0] + 1) % p[1]));
}
extern "C" __global__ void __cluster_dims__(2, 2, 1)
    cluster_histogram(const unsigned char* data, unsigned* bins, unsigned n) {
  __shared__ unsigned part[64];
  const cg::cluster_group cluster = cg::this_cluster();
  part[threadIdx.x] = 0;
  cluster.sync();
  const unsigned all = gridDim.x * gridDim.y * blockDim.x;
  for (unsigned i = (blockIdx.y * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += all)
    atomicAdd(cluster.map_shared_rank(&part[data[i] / 4], data[i] % 4), 1);
  auto t = cluster.barrier_arrive();
  cluster.barrier_wait(std::move(t));
  atomicAdd(&bins[threadIdx.x * 4 + cluster.block_rank()], part[threadIdx.x]);
  cluster.sync();
}
