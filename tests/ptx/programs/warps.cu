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
