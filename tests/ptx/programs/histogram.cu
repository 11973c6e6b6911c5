// Each block computes a histogram in shared memory, and then adds it to the histogram in global memory.
extern "C" __global__ void histogram(const unsigned char* data, unsigned* bins, unsigned n) {
  __shared__ unsigned mine[256];
  for (unsigned b = threadIdx.x; b < 256; b += blockDim.x) mine[b] = 0;
  __syncthreads();
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&mine[data[i]], 1U);
  __syncthreads();
  for (unsigned b = threadIdx.x; b < 256; b += blockDim.x) atomicAdd(&bins[b], mine[b]);
}
