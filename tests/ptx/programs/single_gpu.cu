// Kernels for one GPU, like the benchmarks of J. Cabezas, On the Programmability of Multi-GPU Computing Systems (2015),
// chapter 7: dense algebra, stencils, transforms, sparse matrices, a graph. The kernels are written for one GPU only.

// Returns 32 random bits that depend only on i, so that every device computes the same numbers.
__device__ unsigned scrambled(unsigned long long i) {
  i = (i + 0x9e3779b97f4a7c15ULL) * 0xbf58476d1ce4e5b9ULL;
  i = (i ^ (i >> 27)) * 0x94d049bb133111ebULL;
  return (unsigned)(i >> 32);
}

extern "C" __global__ void fill_random(float* out, unsigned long long n, unsigned seed) {
  const unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = (float)(int)scrambled(i + ((unsigned long long)seed << 40)) * 4.656612873e-10f;
}

extern "C" __global__ void fill_keys(unsigned* out, unsigned long long n, unsigned below, unsigned seed) {
  const unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const unsigned r = scrambled(i + ((unsigned long long)seed << 40));
  out[i] = below == 0 ? r : r % below;
}

extern "C" __global__ void fill_word(unsigned* out, unsigned long long n, unsigned value) {
  const unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = value;
}

// Counts words that differ.
extern "C" __global__ void count_differences(unsigned long long* different, const unsigned* a, const unsigned* b,
                                             unsigned long long n) {
  const unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && a[i] != b[i]) atomicAdd(different, 1ULL);
}

extern "C" __global__ void vecadd(float* c, const float* a, const float* b, unsigned long long n) {
  const unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

extern "C" __global__ void saxpy(float* y, const float* x, float alpha, unsigned long long n) {
  const unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = alpha * x[i] + y[i];
}

// Each block adds up `each` numbers and writes the sum.
extern "C" __global__ void reduction(float* out, const float* in, unsigned long long n, unsigned each) {
  __shared__ float sums[256];
  const unsigned long long first = (unsigned long long)blockIdx.x * each;
  float sum = 0;
  for (unsigned k = threadIdx.x; k < each; k += blockDim.x)
    if (first + k < n) sum += in[first + k];
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = sums[0];
}

// A convolution with 9 x 9 weights.
extern "C" __global__ void convolution2D(float* out, const float* in, const float* weights, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < 4 || y < 4 || x >= width - 4 || y >= height - 4) return;
  float sum = 0;
  for (int j = -4; j <= 4; ++j)
    for (int i = -4; i <= 4; ++i)
      sum += weights[(j + 4) * 9 + i + 4] * in[(long long)(y + j) * width + x + i];
  out[(long long)y * width + x] = sum;
}

extern "C" __global__ void stencil2D(float* out, const float* in, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < 1 || y < 1 || x >= width - 1 || y >= height - 1) return;
  const long long i = (long long)y * width + x;
  out[i] = 0.2f * (in[i] + in[i - 1] + in[i + 1] + in[i - width] + in[i + width]);
}

extern "C" __global__ void stencil3D(float* out, const float* in, int nx, int ny, int nz) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y,
            z = blockIdx.z * blockDim.z + threadIdx.z;
  if (x < 1 || y < 1 || z < 1 || x >= nx - 1 || y >= ny - 1 || z >= nz - 1) return;
  const long long row = nx, plane = (long long)nx * ny, i = z * plane + y * row + x;
  out[i] = 0.4f * in[i] + 0.1f * (in[i - 1] + in[i + 1] + in[i - row] + in[i + row] + in[i - plane] + in[i + plane]);
}

// One warp computes each row.
extern "C" __global__ void sgemv(float* y, const float* a, const float* x, int rows, int columns) {
  const int row = blockIdx.x * blockDim.y + threadIdx.y;
  if (row >= rows) return;
  float sum = 0;
  for (int k = threadIdx.x; k < columns; k += 32) sum += a[(long long)row * columns + k] * x[k];
  for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_down_sync(~0u, sum, distance);
  if (threadIdx.x == 0) y[row] = sum;
}

// Tiles of 64 x 64, 16 x 16 threads with 4 x 4 results each; n is a multiple of 64.
extern "C" __global__ void sgemm(float* c, const float* a, const float* b, int n) {
  __shared__ float ta[16][65], tb[16][64];
  const int tx = threadIdx.x, ty = threadIdx.y, t = ty * 16 + tx;
  const int row = blockIdx.y * 64, column = blockIdx.x * 64;
  float sum[4][4] = {};
  for (int k = 0; k < n; k += 16) {
    for (int i = 0; i < 4; ++i) {
      ta[t % 16][t / 16 + 16 * i] = a[(long long)(row + t / 16 + 16 * i) * n + k + t % 16];
      tb[t / 64 + 4 * i][t % 64] = b[(long long)(k + t / 64 + 4 * i) * n + column + t % 64];
    }
    __syncthreads();
    for (int j = 0; j < 16; ++j)
      for (int p = 0; p < 4; ++p)
        for (int q = 0; q < 4; ++q) sum[p][q] += ta[j][ty + 16 * p] * tb[j][tx + 16 * q];
    __syncthreads();
  }
  for (int p = 0; p < 4; ++p)
    for (int q = 0; q < 4; ++q) c[(long long)(row + ty + 16 * p) * n + column + tx + 16 * q] = sum[p][q];
}

extern "C" __global__ void transpose(float* out, const float* in, int n) {
  __shared__ float tile[32][33];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) tile[threadIdx.y + j][threadIdx.x] = in[(long long)(y + j) * n + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) out[(long long)(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];
}

// One pass of Stockham's transform of n complex numbers, radix 2; `span` is 1, 2, 4, ... n / 2.
extern "C" __global__ void fft1D(float2* out, const float2* in, unsigned n, unsigned span) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n / 2) return;
  const unsigned k = i & (span - 1);
  const float2 a = in[i], b = in[i + n / 2];
  float s, c;
  sincospif(-(float)k / (float)span, &s, &c);
  const float2 t = {b.x * c - b.y * s, b.x * s + b.y * c};
  const unsigned to = 2 * i - k;
  out[to] = {a.x + t.x, a.y + t.y};
  out[to + span] = {a.x - t.x, a.y - t.y};
}

// Each block sorts 1024 pairs of key and value.
extern "C" __global__ void sort_blocks(unsigned* keys, unsigned* values) {
  __shared__ unsigned k[1024], v[1024];
  const unsigned long long first = blockIdx.x * 1024ULL;
  for (unsigned i = threadIdx.x; i < 1024; i += blockDim.x) {
    k[i] = keys[first + i];
    v[i] = values[first + i];
  }
  for (unsigned size = 2; size <= 1024; size *= 2) {
    for (unsigned step = size / 2; step > 0; step /= 2) {
      __syncthreads();
      for (unsigned i = threadIdx.x; i < 1024; i += blockDim.x) {
        const unsigned other = i ^ step;
        if (other <= i) continue;
        const bool up = (i & size) == 0;
        const bool swap = k[i] > k[other] || (k[i] == k[other] && v[i] > v[other]);
        if (swap != up) continue;
        const unsigned a = k[i], b = v[i];
        k[i] = k[other], v[i] = v[other];
        k[other] = a, v[other] = b;
      }
    }
  }
  __syncthreads();
  for (unsigned i = threadIdx.x; i < 1024; i += blockDim.x) {
    keys[first + i] = k[i];
    values[first + i] = v[i];
  }
}

// Merges runs of `run` pairs: each element finds its rank in the neighbouring run. Of pairs with equal keys, the pair
// of the first run comes first.
extern "C" __global__ void merge_runs(unsigned* out_keys, unsigned* out_values, const unsigned* keys,
                                      const unsigned* values, unsigned n, unsigned run) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const unsigned mine = i / run, base = (mine ^ 1) * run, key = keys[i], value = values[i];
  unsigned low = 0, high = base >= n ? 0 : min(run, n - base);
  while (low < high) {
    const unsigned middle = (low + high) / 2, other = keys[base + middle];
    const unsigned its_value = values[base + middle];
    const bool before =
        other < key || (other == key && (its_value < value || (its_value == value && (mine & 1) != 0)));
    low = before ? middle + 1 : low;
    high = before ? high : middle;
  }
  const unsigned to = (mine & ~1u) * run + i % run + low;
  out_keys[to] = key;
  out_values[to] = value;
}

// y = A x for a sparse matrix. In CSR format, one warp computes each row.
extern "C" __global__ void spmv_csr(float* y, const float* values, const unsigned* columns, const unsigned* rows,
                                    const float* x, unsigned count) {
  const unsigned row = blockIdx.x * blockDim.y + threadIdx.y;
  if (row >= count) return;
  float sum = 0;
  for (unsigned k = rows[row] + threadIdx.x; k < rows[row + 1]; k += 32) sum += values[k] * x[columns[k]];
  for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_down_sync(~0u, sum, distance);
  if (threadIdx.x == 0) y[row] = sum;
}

// COO format: one thread for each element. The kernel adds the products to y, so the caller must initialise y.
extern "C" __global__ void spmv_coo(float* y, const float* values, const unsigned* columns, const unsigned* rows,
                                    const float* x, unsigned elements) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < elements) atomicAdd(&y[rows[i]], values[i] * x[columns[i]]);
}

// ELL format: one thread for each row; the k-th elements of all rows are contiguous. HYB combines ELL and COO.
extern "C" __global__ void spmv_ell(float* y, const float* values, const unsigned* columns, const float* x,
                                    unsigned count, unsigned width) {
  const unsigned row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= count) return;
  float sum = 0;
  for (unsigned k = 0; k < width; ++k) {
    const unsigned long long at = (unsigned long long)k * count + row;
    sum += values[at] * x[columns[at]];
  }
  y[row] = sum;
}

// JDS format: rows in descending order of length; the k-th elements of all rows are contiguous, from starts[k] on.
extern "C" __global__ void spmv_jds(float* y, const float* values, const unsigned* columns, const unsigned* starts,
                                    const unsigned* lengths, const unsigned* order, const float* x, unsigned count) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  float sum = 0;
  for (unsigned k = 0; k < lengths[i]; ++k) sum += values[starts[k] + i] * x[columns[starts[k] + i]];
  y[order[i]] = sum;
}

// Breadth-first search as in Rodinia, in two kernels for each level.
extern "C" __global__ void bfs_expand(const unsigned* first, const unsigned* edges, unsigned char* frontier,
                                      unsigned char* next, const unsigned char* visited, int* cost, unsigned count) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count || frontier[i] == 0) return;
  frontier[i] = 0;
  for (unsigned k = first[i]; k < first[i + 1]; ++k) {
    const unsigned to = edges[k];
    if (visited[to] != 0) continue;
    cost[to] = cost[i] + 1;
    next[to] = 1;
  }
}

extern "C" __global__ void bfs_advance(unsigned char* frontier, unsigned char* next, unsigned char* visited, int* goes_on,
                                       unsigned count) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count || next[i] == 0) return;
  frontier[i] = visited[i] = 1;
  next[i] = 0;
  *goes_on = 1;
}
