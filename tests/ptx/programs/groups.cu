// Cooperative groups: tiles, coalesced groups, labelled partitions, reductions and the whole grid.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;
extern "C" __global__ void group_sum(const float* data, float* sum, unsigned n) {
  auto block = cg::this_thread_block();
  auto warp = cg::tiled_partition<32>(block);
  __shared__ float partial[32];
  float mine = 0;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) mine += data[i];
  mine = cg::reduce(warp, mine, cg::plus<float>());
  if (warp.thread_rank() == 0) partial[warp.meta_group_rank()] = mine;
  block.sync();
  if (warp.meta_group_rank() == 0) {
    mine = warp.thread_rank() < warp.meta_group_size() ? partial[warp.thread_rank()] : 0;
    mine = cg::reduce(warp, mine, cg::plus<float>());
    if (warp.thread_rank() == 0) atomicAdd(sum, mine);
  }
}
extern "C" __global__ void group_int(const int* data, int* out) {
  auto block = cg::this_thread_block();
  auto tile = cg::tiled_partition<8>(block);
  const unsigned i = block.thread_rank();
  int v = data[i];
  out[i] = cg::reduce(tile, v, cg::plus<int>()) + cg::reduce(tile, v, cg::greater<int>());
  if (v & 1) {
    auto odd = cg::coalesced_threads();
    out[i] += odd.size() * 1000 + odd.thread_rank();
    out[i] += cg::inclusive_scan(tile.size() ? odd : odd, 1);
  }
  auto same = cg::labeled_partition(cg::coalesced_threads(), v % 3);
  out[i] += cg::reduce(same, 1, cg::plus<int>()) * 100000;
  out[i] += tile.any(v == 3) + 2 * tile.all(v >= 0) + tile.ballot(v & 1) + tile.match_any(v);
}
extern "C" __global__ void grid_stages(int* data, unsigned n, int rounds) {
  auto grid = cg::this_grid();
  const unsigned i = grid.thread_rank();
  for (int r = 0; r < rounds; ++r) {
    const int left = i > 0 && i < n ? data[i - 1] : 0;
    grid.sync();
    if (i < n) data[i] += left;
    grid.sync();
  }
}
