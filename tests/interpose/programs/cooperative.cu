// A cooperative grid whose blocks synchronise with each other, and a cluster launch.
#include <cooperative_groups.h>

#include <vector>

#include "check.h"

namespace cg = cooperative_groups;

__global__ void rounds(unsigned* from, unsigned* to, unsigned n, int count) {
  const cg::grid_group grid = cg::this_grid();
  for (int r = 0; r < count; ++r) {
    for (unsigned i = grid.thread_rank(); i < n; i += grid.size()) to[i] = from[(i + 1) % n] + 3 * from[i];
    grid.sync();
    unsigned* const t = from;
    from = to;
    to = t;
  }
}

__global__ void clustered(unsigned* p) {
  const cg::cluster_group cluster = cg::this_cluster();
  p[blockIdx.x * blockDim.x + threadIdx.x] = cluster.block_rank() * 1000 + cluster.num_blocks();
}

int main() {
  constexpr unsigned n = 1 << 20;
  std::vector<unsigned> host(n);
  for (unsigned i = 0; i < n; ++i) host[i] = i;
  unsigned *a, *b;
  CHECK(cudaMalloc(&a, n * sizeof *a));
  CHECK(cudaMalloc(&b, n * sizeof *b));
  CHECK(cudaMemcpy(a, host.data(), n * sizeof *a, cudaMemcpyHostToDevice));
  unsigned size = n;
  int count = 10;
  void* arguments[] = {&a, &b, &size, &count};
  CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(rounds), dim3(64), dim3(256), arguments, 0, nullptr));
  CHECK(cudaMemcpy(host.data(), a, n * sizeof *a, cudaMemcpyDeviceToHost));
  std::printf("cooperative: %016llx\n", (unsigned long long)digest(host.data(), n * sizeof *a));

  cudaLaunchConfig_t configuration{};
  configuration.gridDim = dim3(16);
  configuration.blockDim = dim3(64);
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = 4;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  configuration.attrs = &attribute;
  configuration.numAttrs = 1;
  CHECK(cudaLaunchKernelEx(&configuration, clustered, a));
  CHECK(cudaMemcpy(host.data(), a, 1024 * sizeof *a, cudaMemcpyDeviceToHost));
  std::printf("clusters: %016llx\n", (unsigned long long)digest(host.data(), 1024 * sizeof *a));
}
