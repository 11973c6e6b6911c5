// Bitonic sort of each block's elements in dynamic shared memory.
extern "C" __global__ void bitonic(int* data) {
  extern __shared__ int keys[];
  const unsigned t = threadIdx.x;
  keys[t] = data[blockIdx.x * blockDim.x + t];
  for (unsigned k = 2; k <= blockDim.x; k *= 2) {
    for (unsigned j = k / 2; j > 0; j /= 2) {
      __syncthreads();
      const unsigned other = t ^ j;
      if (other > t) {
        const int x = keys[t], y = keys[other];
        if ((x > y) == ((t & k) == 0)) {
          keys[t] = y;
          keys[other] = x;
        }
      }
    }
  }
  __syncthreads();
  data[blockIdx.x * blockDim.x + t] = keys[t];
}
