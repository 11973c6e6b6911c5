// Shuffles, votes, match, redux, warp barriers, partial masks and divergence.
extern "C" __global__ void warps(const int* in, int* out) {
  const int t = threadIdx.x, lane = t % 32;
  int v = in[t];
  int r = __shfl_sync(~0U, v, 3) + 3 * __shfl_xor_sync(~0U, v, 5) + 5 * __shfl_down_sync(~0U, v, 2, 8) + 7 * __shfl_up_sync(~0U, v, 1, 16);
  r += __ballot_sync(~0U, v > 0) + __any_sync(~0U, v == 1) + 2 * __all_sync(~0U, v != 0) + __popc(__match_any_sync(~0U, v % 4));
  int same; r += __match_all_sync(~0U, 9, &same); r += same;
  unsigned long long w = __shfl_xor_sync(~0U, static_cast<unsigned long long>(v) << 20, 1); r ^= static_cast<int>(w >> 18);
  double d = __shfl_down_sync(~0U, v * 0.5, 1); r += static_cast<int>(d);
#if __CUDA_ARCH__ >= 800
  r += __reduce_add_sync(~0U, v) + __reduce_max_sync(~0U, v) + __reduce_xor_sync(~0U, unsigned(v)) + __reduce_min_sync(~0U, unsigned(v));
#endif
  if (lane < 10) { r += __shfl_sync(0x3ff, v, lane + 1); __syncwarp(0x3ff); r ^= __activemask(); }
  else { r -= __shfl_xor_sync(~0x3ffU, v, 1); __syncwarp(~0x3ffU); }
  __syncwarp();
  r += __syncthreads_count(v & 1) + __syncthreads_or(v == 12345) + __syncthreads_and(v < 100000);
  out[t] = r;
}
extern "C" __global__ void named_barriers(int* out) {
  __shared__ int box[64];
  const int t = threadIdx.x;
  if (t < 64) { box[t] = t; asm volatile("bar.sync 1, 64;" ::: "memory"); out[t] = box[63 - t]; }
  else { asm volatile("bar.sync 2, 64;" ::: "memory"); out[t] = -t; }
  __syncthreads();
  if (t < 32) asm volatile("bar.arrive 3, 64;" ::: "memory"); else if (t < 64) asm volatile("bar.sync 3, 64;" ::: "memory");
  asm volatile("barrier.cta.sync 0;" ::: "memory");
}
extern "C" __global__ void leaves_early(int* out) {
  if (threadIdx.x % 3 == 0) return;
  __syncthreads();
  out[threadIdx.x] = __popc(__activemask()) > 0;
}

// Code for GPUs before Volta, whose warps run in lockstep: no __syncwarp between the steps. out[b] is the sum of the 64
// numbers of block b.
extern "C" __global__ void lockstep_reduce(const int* in, int* out) {
  __shared__ volatile int s[64];
  const int t = threadIdx.x;
  s[t] = in[blockIdx.x * 64 + t];
  __syncthreads();
  if (t < 32) {
    s[t] += s[t + 32];
    s[t] += s[t + 16];
    s[t] += s[t + 8];
    s[t] += s[t + 4];
    s[t] += s[t + 2];
    s[t] += s[t + 1];
  }
  if (t == 0) out[blockIdx.x] = s[0];
}
__device__ __noinline__ void lockstep_step(volatile int* s, int lane, int distance) {
  if (lane >= distance) s[lane] += s[lane - distance];
}
// An inclusive scan of each warp, through a function, after a loop that the lanes leave one after the other.
extern "C" __global__ void lockstep_scan(int* out) {
  __shared__ volatile int s[64];
  const int t = threadIdx.x, lane = t % 32;
  volatile int* const mine = s + t - lane;
  mine[lane] = 0;
  for (int n = 0; n <= lane; ++n) mine[lane] = mine[lane] + 1;
  for (int distance = 1; distance < 32; distance *= 2) lockstep_step(mine, lane, distance);
  out[t] = mine[31] * 1000 + mine[lane];
}
// y = a x. A block of 256 threads computes eight rows; shuffles add up each warp's part of a row.
extern "C" __global__ void row_sums(const float* a, const double* x, double* y, int n) {
  __shared__ double sums[8];
  if (threadIdx.x < 8) sums[threadIdx.x] = 0;
  __syncthreads();
  for (int k = 0; k < 8; ++k) {
    double s = 0;
    for (int j = threadIdx.x; j < n; j += blockDim.x) s += a[(blockIdx.x * 8 + k) * n + j] * x[j];
    for (int d = 16; d > 0; d /= 2) s += __shfl_down_sync(~0U, s, d);
    if (threadIdx.x % 32 == 0) atomicAdd(&sums[k], s);
  }
  __syncthreads();
  if (threadIdx.x < 8) y[blockIdx.x * 8 + threadIdx.x] = sums[threadIdx.x];
}
