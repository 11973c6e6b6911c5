// Inclusive scan of each block's elements by shuffles; the last warp result goes through shared memory.
extern "C" __global__ void block_scan(const int* in, int* out, unsigned n) {
  __shared__ int totals[32];
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int value = i < n ? in[i] : 0;
  for (unsigned d = 1; d < 32; d *= 2) {
    const int left = __shfl_up_sync(~0U, value, d);
    if (lane >= d) value += left;
  }
  if (lane == 31) totals[warp] = value;
  __syncthreads();
  if (warp == 0) {
    int total = lane < blockDim.x / 32 ? totals[lane] : 0;
    for (unsigned d = 1; d < 32; d *= 2) {
      const int left = __shfl_up_sync(~0U, total, d);
      if (lane >= d) total += left;
    }
    totals[lane] = total;
  }
  __syncthreads();
  if (warp > 0) value += totals[warp - 1];
  if (i < n) out[i] = value;
}
