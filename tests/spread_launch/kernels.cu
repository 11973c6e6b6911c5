// Typical kernels of programs for one GPU. kernels.ptx is made from this file:
//   nvcc -ptx -arch=compute_80 -std=c++17 -o kernels.ptx kernels.cu

#include <cooperative_groups.h>

#include <cstdio>

__constant__ float weights[5];
__device__ unsigned finished;
__device__ float factor = 3;

extern "C" __global__ void vecadd(float* c, const float* a, const float* b, size_t n) {
  const size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

extern "C" __global__ void saxpy(float* y, const float* x, float a, size_t n) {
  const size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}

extern "C" __global__ void stencil2d(float* out, const float* in, int nx, int ny) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < 1 || y < 1 || x >= nx - 1 || y >= ny - 1) return;
  const size_t i = static_cast<size_t>(y) * nx + x;
  out[i] = 0.2f * (in[i] + in[i - 1] + in[i + 1] + in[i - nx] + in[i + nx]);
}

// The weights are in constant memory.
extern "C" __global__ void stencil3d(float* out, const float* in, int nx, int ny, int nz) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  const int z = blockIdx.z * blockDim.z + threadIdx.z;
  if (x < 1 || y < 1 || z < 1 || x >= nx - 1 || y >= ny - 1 || z >= nz - 1) return;
  const size_t plane = static_cast<size_t>(nx) * ny, i = z * plane + static_cast<size_t>(y) * nx + x;
  out[i] = weights[0] * in[i] + weights[1] * (in[i - 1] + in[i + 1]) + weights[2] * (in[i - nx] + in[i + nx]) +
           weights[3] * (in[i - plane] + in[i + plane]);
}

extern "C" __global__ void product(float* c, const float* a, const float* b, int n) {
  __shared__ float left[16][16], right[16][16];
  const int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < n; k += 16) {
    left[threadIdx.y][threadIdx.x] = a[static_cast<size_t>(row) * n + k + threadIdx.x];
    right[threadIdx.y][threadIdx.x] = b[static_cast<size_t>(k + threadIdx.y) * n + column];
    __syncthreads();
    for (int j = 0; j < 16; ++j) sum += left[threadIdx.y][j] * right[j][threadIdx.x];
    __syncthreads();
  }
  c[static_cast<size_t>(row) * n + column] = sum;
}

extern "C" __global__ void transpose(float* out, const float* in, int n) {
  __shared__ float tile[32][33];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) tile[threadIdx.y + j][threadIdx.x] = in[static_cast<size_t>(y + j) * n + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) out[static_cast<size_t>(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];
}

extern "C" __global__ void histogram(unsigned* bins, const unsigned* values, size_t n) {
  __shared__ unsigned own[256];
  own[threadIdx.x] = 0;
  __syncthreads();
  for (size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x; i < n;
       i += static_cast<size_t>(gridDim.x) * blockDim.x)
    atomicAdd(&own[values[i] >> 24], 1u);
  __syncthreads();
  atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}

__device__ unsigned sum_of_block(const unsigned* values, size_t n) {
  __shared__ unsigned all[256];
  unsigned sum = 0;
  for (size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x; i < n;
       i += static_cast<size_t>(gridDim.x) * blockDim.x)
    sum += values[i];
  all[threadIdx.x] = sum;
  __syncthreads();
  for (unsigned s = blockDim.x / 2; s > 0; s /= 2) {
    if (threadIdx.x < s) all[threadIdx.x] += all[threadIdx.x + s];
    __syncthreads();
  }
  return all[0];
}

__device__ void finish(unsigned* result, const unsigned* parts, unsigned* counter) {
  __shared__ bool last;
  __threadfence();
  if (threadIdx.x == 0) last = atomicAdd(counter, 1u) == gridDim.x - 1;
  __syncthreads();
  if (!last || threadIdx.x != 0) return;
  unsigned sum = 0;
  for (unsigned b = 0; b < gridDim.x; ++b) sum += const_cast<const volatile unsigned*>(parts)[b];
  *result = sum;
  *counter = 0;
}

// The last block to finish adds the sums of all blocks. Its counter is a parameter, or a variable of the program.
extern "C" __global__ void reduce_last(unsigned* result, unsigned* parts, unsigned* counter, const unsigned* values,
                                       size_t n) {
  const unsigned sum = sum_of_block(values, n);
  if (threadIdx.x == 0) parts[blockIdx.x] = sum;
  finish(result, parts, counter);
}
extern "C" __global__ void reduce_with_variable(unsigned* result, unsigned* parts, const unsigned* values, size_t n) {
  const unsigned sum = sum_of_block(values, n);
  if (threadIdx.x == 0) parts[blockIdx.x] = sum;
  finish(result, parts, &finished);
}

// A separate function that reads the block index.
__device__ __noinline__ size_t my_element() { return blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x; }
extern "C" __global__ void scale(float* data, size_t n) {
  const size_t i = my_element();
  if (i < n) data[i] *= factor;
}

// The pointers to the arrays are in memory.
extern "C" __global__ void add_rows(float* const* rows, int count, size_t n) {
  const size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
  if (i >= n) return;
  for (int r = 1; r < count; ++r) rows[0][i] += rows[r][i];
}

extern "C" __global__ void print_block() { printf("block %u of %u\n", blockIdx.x, gridDim.x); }

// Kernels that must stay on one device.
extern "C" __global__ void spin(volatile unsigned* flag, unsigned* out) {
  if (blockIdx.x == 0) {
    out[0] = 1;
    __threadfence();
    *flag = 1;
  } else {
    while (*flag == 0) {
    }
    out[blockIdx.x] = 1;
  }
}
extern "C" __global__ void grid_sync(unsigned* out) {
  out[blockIdx.x] = blockIdx.x;
  cooperative_groups::this_grid().sync();
  out[gridDim.x + blockIdx.x] = out[(blockIdx.x + 1) % gridDim.x];
}
