// Races in shared memory. If `right` is true, the kernels execute the barriers that they need; otherwise they race.
#include <cuda_pipeline.h>

#include <cuda/atomic>
// Each thread reads what its neighbour wrote, and then writes what its neighbour read.
extern "C" __global__ void neighbours(const int* in, int* out, bool right) {
  __shared__ int tile[64];
  const int t = threadIdx.x;
  tile[t] = in[t];
  if (right) __syncthreads();
  const int next = tile[(t + 1) % 64];
  if (right) __syncthreads();
  tile[t] = next;
  out[t] = tile[t];
}
// One warp executes the last steps of a sum.
extern "C" __global__ void warp_sum(const int* in, int* out, bool right) {
  extern __shared__ volatile int sums[];
  const int t = threadIdx.x;
  sums[t] = in[t];
  __syncthreads();
  for (int step = 16; step > 0; step /= 2) {
    const int other = sums[t ^ step];
    if (right) __syncwarp();
    sums[t] += other;
    if (right) __syncwarp();
  }
  out[t] = sums[t];
}
// Counts with atomic operations, which do not race; reading the sum needs a barrier.
extern "C" __global__ void count_even(const int* in, int* out, bool right) {
  __shared__ int count, some;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  if (in[threadIdx.x] % 2 == 0) atomicAdd(&count, 1);
  some = 1;  // all threads write the same value
  if (right) __syncthreads();
  if (threadIdx.x == 40) *out = count + some;
}
// Two asynchronous copies: the block reads the bytes of the first copy while the second copy runs.
extern "C" __global__ void copied(const int* in, int* out, bool right) {
  __shared__ int first[64], second[64];
  const int t = threadIdx.x;
  __pipeline_memcpy_async(&first[t], &in[t], sizeof(int));
  __pipeline_commit();
  __pipeline_memcpy_async(&second[t], &in[t], sizeof(int));
  __pipeline_commit();
  if (right) __pipeline_wait_prior(1);
  __syncthreads();
  const int a = first[63 - t];
  __pipeline_wait_prior(0);
  __syncthreads();
  out[t] = a + second[63 - t];
}
// One half of the block passes numbers to the other half in three ways: by a named barrier, by a lock, and by a flag.
extern "C" __global__ void handed_over(const int* in, int* out, bool right) {
  __shared__ int box[32], locked, total;
  __shared__ cuda::atomic<int, cuda::thread_scope_block> flag;
  const int t = threadIdx.x;
  if (t == 0) locked = total = 0, flag.store(0);
  __syncthreads();
  if (t < 32) {
    box[t] = in[t];
    if (right) asm volatile("bar.arrive 1, 64;" ::: "memory");
  } else {
    if (right) asm volatile("bar.sync 1, 64;" ::: "memory");
    out[t] = box[63 - t];
  }
  __syncthreads();
  if (t % 32 == 5) {
    while (atomicCAS(&locked, 0, 1) != 0) {}
    __threadfence_block();
    total += in[t];
    __threadfence_block();
    atomicExch(&locked, 0);
  }
  __syncthreads();
  if (t == 0) {
    box[0] = total;
    flag.store(1, cuda::std::memory_order_release);
  } else if (t == 63) {
    while (flag.load(cuda::std::memory_order_acquire) == 0) {}
    out[0] = box[0];
  }
}
