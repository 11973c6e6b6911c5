// Barriers of blocks in which some threads have ended, and barriers in shared memory: alone, and with copies that they track.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>

#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda/ptx>
namespace cg = cooperative_groups;
using barrier = cuda::barrier<cuda::thread_scope_block>;
#pragma nv_diag_suppress static_var_with_dynamic_init
// Each of the first n threads receives the number of the thread that is `rounds` places further on.
extern "C" __global__ void rounds_of_some(int* out, int n, int rounds) {
  __shared__ int values[2][64];
  const int t = static_cast<int>(threadIdx.x);
  if (t >= n) return;
  values[0][t] = t;
  for (int r = 0; r < rounds; ++r) {
    __syncthreads();
    values[(r + 1) % 2][t] = values[r % 2][(t + 1) % n];
  }
  out[t] = values[rounds % 2][t];
}
extern "C" __global__ void barrier_rounds(int* data, int rounds) {
  __shared__ barrier meet;
  __shared__ int values[128];
  if (threadIdx.x == 0) init(&meet, blockDim.x);
  __syncthreads();
  values[threadIdx.x] = data[blockIdx.x * blockDim.x + threadIdx.x];
  for (int r = 0; r < rounds; ++r) {
    meet.arrive_and_wait();
    const int next = values[(threadIdx.x + 1) % blockDim.x] * 3 + r;
    auto token = meet.arrive();
    meet.wait(std::move(token));
    values[threadIdx.x] = next;
  }
  data[blockIdx.x * blockDim.x + threadIdx.x] = values[threadIdx.x];
}
extern "C" __global__ void barrier_copy(const int* in, int* out, unsigned n) {
  __shared__ barrier meet;
  __shared__ alignas(16) int values[256];
  if (threadIdx.x == 0) init(&meet, blockDim.x);
  __syncthreads();
  cuda::memcpy_async(cg::this_thread_block(), values, in + blockIdx.x * 256, cuda::aligned_size_t<16>(1024), meet);
  meet.arrive_and_wait();
  for (unsigned i = threadIdx.x; i < 256; i += blockDim.x) out[blockIdx.x * 256 + i] = values[255 - i];
}
extern "C" __global__ void pipeline_sum(const int* in, int* out, unsigned batches) {
  constexpr unsigned stages = 2;
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, stages> state;
  __shared__ int values[stages][64];
  auto block = cg::this_thread_block();
  auto pipe = cuda::make_pipeline(block, &state);
  int sum = 0;
  for (unsigned fetch = 0, compute = 0; compute < batches; ++compute) {
    for (; fetch < batches && fetch < compute + stages; ++fetch) {
      pipe.producer_acquire();
      cuda::memcpy_async(block, values[fetch % stages], in + fetch * 64, sizeof(int) * 64, pipe);
      pipe.producer_commit();
    }
    pipe.consumer_wait();
    sum += values[compute % stages][(threadIdx.x + compute) % 64];
    pipe.consumer_release();
  }
  out[threadIdx.x] = sum;
}
extern "C" __global__ void group_copy(const int* in, int* out) {
  __shared__ int values[128];
  auto block = cg::this_thread_block();
  cg::memcpy_async(block, values, in, sizeof values);
  cg::wait(block);
  out[threadIdx.x] = values[127 - threadIdx.x];
}
#if __CUDA_ARCH__ >= 900
namespace ptx = cuda::ptx;
extern "C" __global__ void bulk_copy(const int* in, int* out) {
  __shared__ alignas(128) int values[512];
  __shared__ std::uint64_t bar;
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&bar, 1);
    ptx::fence_proxy_async(ptx::space_shared);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, values, in + blockIdx.x * 512, sizeof values, &bar);
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar, sizeof values);
  }
  while (!ptx::mbarrier_try_wait_parity(&bar, 0)) {
  }
  for (int i = threadIdx.x; i < 512; i += blockDim.x) values[i] = values[i] * 2 + 1;
  ptx::fence_proxy_async(ptx::space_shared);
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, out + blockIdx.x * 512, values, sizeof values);
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
  }
}
extern "C" __global__ void __cluster_dims__(4, 1, 1) ring(const int* in, int* out) {
  __shared__ alignas(16) int inbox[64];
  __shared__ alignas(16) int outbox[64];
  __shared__ std::uint64_t bar;
  const cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&bar, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
  }
  outbox[threadIdx.x] = in[blockIdx.x * 64 + threadIdx.x] + 7;
  cluster.sync();
  const unsigned next = (cluster.block_rank() + 1) % 4;
  if (threadIdx.x == 0) {
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &bar, sizeof inbox);
    ptx::fence_proxy_async(ptx::space_shared);
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_shared, cluster.map_shared_rank(inbox, next), outbox,
                       sizeof inbox, cluster.map_shared_rank(&bar, next));
  }
  while (!ptx::mbarrier_try_wait_parity(&bar, 0)) {
  }
  out[blockIdx.x * 64 + threadIdx.x] = inbox[63 - threadIdx.x];
  cluster.sync();
}
extern "C" __global__ void __cluster_dims__(2, 1, 1) remote(int* out) {
  __shared__ alignas(16) long long word[2];
  __shared__ std::uint64_t bar;
  const cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x == 0) ptx::mbarrier_init(&bar, 1);
  cluster.sync();
  const unsigned other = cluster.block_rank() ^ 1;
  if (threadIdx.x == 0) {
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cluster, ptx::space_shared, &bar, 8);
    ptx::st_async(cluster.map_shared_rank(&word[1], other), (long long)(blockIdx.x * 1000 + 5),
                  cluster.map_shared_rank(&bar, other));
  }
  while (!ptx::mbarrier_try_wait_parity(ptx::sem_acquire, ptx::scope_cluster, &bar, 0)) {
  }
  if (threadIdx.x == 0) out[blockIdx.x] = (int)word[1];
  cluster.sync();
}
#endif
