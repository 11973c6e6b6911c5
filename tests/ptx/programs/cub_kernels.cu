// Device code of CUB: radix sort, scan, reduction and run lengths of a block.
#include <cub/cub.cuh>
extern "C" __global__ void block_sort(int* data) {
  using sort = cub::BlockRadixSort<int, 128, 4>; using load = cub::BlockLoad<int, 128, 4, cub::BLOCK_LOAD_TRANSPOSE>; using store = cub::BlockStore<int, 128, 4, cub::BLOCK_STORE_TRANSPOSE>;
  __shared__ union { sort::TempStorage sort; load::TempStorage load; store::TempStorage store; } s;
  int keys[4]; int* mine = data + blockIdx.x * 512;
  load(s.load).Load(mine, keys); __syncthreads(); sort(s.sort).Sort(keys); __syncthreads(); store(s.store).Store(mine, keys);
}
extern "C" __global__ void block_sums(const int* in, int* out, int* total) {
  using scan = cub::BlockScan<int, 128>; using reduce = cub::BlockReduce<int, 128>;
  __shared__ scan::TempStorage s; __shared__ reduce::TempStorage r;
  int v = in[blockIdx.x * 128 + threadIdx.x], o; scan(s).ExclusiveSum(v, o); out[blockIdx.x * 128 + threadIdx.x] = o;
  int t = reduce(r).Sum(v); if (threadIdx.x == 0) total[blockIdx.x] = t;
}
void host_side() { void* t = nullptr; size_t n = 0; cub::DeviceRadixSort::SortPairs(t, n, (unsigned*)nullptr, (unsigned*)nullptr, (float*)nullptr, (float*)nullptr, 10); cub::DeviceScan::InclusiveSum(t, n, (int*)nullptr, (int*)nullptr, 10); cub::DeviceReduce::Sum(t, n, (double*)nullptr, (double*)nullptr, 10); cub::DeviceHistogram::HistogramEven(t, n, (float*)nullptr, (int*)nullptr, 11, 0.F, 1.F, 10); cub::DeviceSelect::Unique(t, n, (int*)nullptr, (int*)nullptr, (int*)nullptr, 10); }
