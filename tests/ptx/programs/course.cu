// Typical kernels of courses on CUDA, for the analysis of accesses.

#include <cstdint>

extern "C" __global__ void saxpy(float* y, const float* x, float a, long n) {
  const long i = blockIdx.x * static_cast<long>(blockDim.x) + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}

extern "C" __global__ void grid_stride(float* y, const float* x, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = 2 * x[i];
}

extern "C" __global__ void stencil(float* out, const float* in, int nx, int ny) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < 1 || y < 1 || x >= nx - 1 || y >= ny - 1) return;
  const int i = y * nx + x;
  out[i] = 0.2f * (in[i] + in[i - 1] + in[i + 1] + in[i - nx] + in[i + nx]);
}

// The border is clamped.
extern "C" __global__ void heat(float* out, const float* in, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int left = i > 0 ? i - 1 : 0, right = min(i + 1, n - 1);
  out[i] = in[i] + 0.1f * (in[left] - 2 * in[i] + in[right]);
}

extern "C" __global__ void transpose(float* out, const float* in, int n) {
  __shared__ float t[32][33];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) t[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) out[(y + j) * n + x] = t[threadIdx.x][threadIdx.y + j];
}

extern "C" __global__ void product(float* c, const float* a, const float* b, int n) {
  const int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= n || column >= n) return;
  float sum = 0;
  for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + column];
  c[row * n + column] = sum;
}

// The last block that finishes adds the sums of all blocks.
__device__ unsigned finished;
extern "C" __global__ void reduce_last(float* result, float* sums, const float* x, int n) {
  __shared__ float s[128];
  __shared__ bool is_last;
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += x[i];
  s[threadIdx.x] = sum;
  __syncthreads();
  for (int step = blockDim.x / 2; step > 0; step /= 2) {
    if (threadIdx.x < step) s[threadIdx.x] += s[threadIdx.x + step];
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    sums[blockIdx.x] = s[0];
    __threadfence();
    is_last = atomicAdd(&finished, 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (!is_last || threadIdx.x != 0) return;
  float all = 0;
  for (int b = 0; b < gridDim.x; ++b) all += static_cast<volatile float*>(sums)[b];
  *result = all;
  finished = 0;
}

// Each block waits for the previous block.
extern "C" __global__ void chain(float* x, volatile int* flags) {
  if (threadIdx.x == 0 && blockIdx.x > 0)
    while (flags[blockIdx.x - 1] == 0) {
    }
  __syncthreads();
  if (blockIdx.x > 0) x[blockIdx.x] += x[blockIdx.x - 1];
  __threadfence();
  if (threadIdx.x == 0) flags[blockIdx.x] = 1;
}

extern "C" __global__ void bodies(float4* force, const float4* position, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float4 p = position[i];
  float4 f{};
  for (int j = 0; j < n; ++j) {
    const float4 q = position[j];
    const float dx = q.x - p.x, dy = q.y - p.y, dz = q.z - p.z;
    const float r = rsqrtf(dx * dx + dy * dy + dz * dz + 1e-9f), w = q.w * r * r * r;
    f.x += w * dx;
    f.y += w * dy;
    f.z += w * dz;
  }
  force[i] = f;
}

extern "C" __global__ void monte_carlo(unsigned long long* inside, unsigned samples, unsigned seed) {
  unsigned state = seed + 747796405U * (blockIdx.x * blockDim.x + threadIdx.x), hits = 0;
  for (unsigned n = 0; n < samples; ++n) {
    state = state * 1664525U + 1013904223U;
    const float x = static_cast<float>(state >> 8) * 0x1p-24f;
    state = state * 1664525U + 1013904223U;
    const float y = static_cast<float>(state >> 8) * 0x1p-24f;
    hits += x * x + y * y < 1 ? 1 : 0;
  }
  atomicAdd(inside, static_cast<unsigned long long>(hits));
}

extern "C" __global__ void sparse(float* y, const int* begins, const int* columns, const float* values, const float* x, int rows) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0;
  for (int k = begins[row]; k < begins[row + 1]; ++k) sum += values[k] * x[columns[k]];
  y[row] = sum;
}

extern "C" __global__ void histogram(unsigned* bins, const unsigned* x, long n) {
  __shared__ unsigned s[256];
  s[threadIdx.x] = 0;
  __syncthreads();
  for (long i = blockIdx.x * static_cast<long>(blockDim.x) + threadIdx.x; i < n; i += static_cast<long>(gridDim.x) * blockDim.x)
    atomicAdd(&s[x[i] >> 24], 1U);
  __syncthreads();
  atomicAdd(&bins[threadIdx.x], s[threadIdx.x]);
}

extern "C" __global__ void flattened(float* out, const float* row_scale, const float* in, int nx, int ny) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < nx * ny) out[i] = in[i] * row_scale[i / nx];
}

extern "C" __global__ void warp_per_row(float* out, const float* in, int columns) {
  const int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  float sum = 0;
  for (int c = threadIdx.x % 32; c < columns; c += 32) sum += in[row * columns + c];
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(~0U, sum, step);
  if (threadIdx.x % 32 == 0) out[row] = sum;
}

// A lock-free maximum of floats.
extern "C" __global__ void largest(unsigned* result, const float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned old = *result;
  while (__uint_as_float(old) < x[i]) {
    const unsigned seen = atomicCAS(result, old, __float_as_uint(x[i]));
    if (seen == old) break;
    old = seen;
  }
}

extern "C" __global__ void queue(unsigned* next, float* y, const float* x, unsigned n) {
  for (unsigned i = atomicAdd(next, 1); i < n; i = atomicAdd(next, 1)) y[i] = 2 * x[i];
}

extern "C" __global__ void pitched(char* out, const char* in, size_t pitch, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < width && y < height)
    reinterpret_cast<float*>(out + y * pitch)[x] = reinterpret_cast<const float*>(in + y * pitch)[x] + 1;
}

extern "C" __global__ void frontier(const int* begins, const int* edges, int* level, int depth, bool* changed, int nodes) {
  const int node = blockIdx.x * blockDim.x + threadIdx.x;
  if (node >= nodes || level[node] != depth) return;
  for (int e = begins[node]; e < begins[node + 1]; ++e) {
    if (level[edges[e]] >= 0) continue;
    level[edges[e]] = depth + 1;
    *changed = true;
  }
}

// Blocks wait at a barrier that the program implements itself.
extern "C" __global__ void own_barrier(unsigned* arrived, float* x) {
  x[blockIdx.x] = 1;
  __threadfence();
  atomicAdd(arrived, 1);
  while (atomicAdd(arrived, 0) < gridDim.x) {
  }
  x[blockIdx.x] += x[(blockIdx.x + 1) % gridDim.x];
}
