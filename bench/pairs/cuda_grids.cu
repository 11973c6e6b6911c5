// The CUDA versions of the programs on grids, matrices and images.

#include <tuple>

#include "bench/pairs/cuda_arrays.h"

namespace hpe::bench::pairs::cuda {

__global__ void stencil_2d_kernel(const float* in, float* out, int n) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < 1 || y < 1 || x >= n - 1 || y >= n - 1) return;
  int i = y * n + x;
  out[i] = 0.5F * in[i] + 0.125F * (in[i - 1] + in[i + 1] + in[i - n] + in[i + n]);
}

version stencil_2d(int n) {
  auto a = make<float>(inputs(std::size_t(n) * n)), b = make<float>(inputs(std::size_t(n) * n));
  return {[=] {
            dim3 block(32, 8), grid(parts(n, 32), parts(n, 8));
            for (int s = 0; s < stencil_steps; ++s)
              stencil_2d_kernel<<<grid, block>>>(s % 2 ? b->get() : a->get(), s % 2 ? a->get() : b->get(), n);
            finish();
          },
          [=] { return a->values(); }};
}

__global__ void stencil_3d_kernel(const float* in, float* out, int n) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < 1 || y < 1 || x >= n - 1 || y >= n - 1) return;
  int plane = n * n;
  int i = plane + y * n + x;
  float below = in[i - plane], here = in[i];
  for (int z = 1; z < n - 1; ++z) {
    float above = in[i + plane];
    out[i] = 0.4F * here + 0.1F * (in[i - 1] + in[i + 1] + in[i - n] + in[i + n] + below + above);
    below = here;
    here = above;
    i += plane;
  }
}

version stencil_3d(int n) {
  auto a = make<float>(inputs(std::size_t(n) * n * n)), b = make<float>(inputs(std::size_t(n) * n * n));
  return {[=] {
            dim3 block(32, 8), grid(parts(n, 32), parts(n, 8));
            for (int s = 0; s < stencil_steps; ++s)
              stencil_3d_kernel<<<grid, block>>>(s % 2 ? b->get() : a->get(), s % 2 ? a->get() : b->get(), n);
            finish();
          },
          [=] { return a->values(); }};
}

__global__ void jacobi_kernel(const float* in, float* out, float* change, int n) {
  __shared__ float sums[256];
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  int t = threadIdx.y * blockDim.x + threadIdx.x;
  float difference = 0;
  if (x > 0 && y > 0 && x < n - 1 && y < n - 1) {
    int i = y * n + x;
    float next = 0.25F * (in[i - 1] + in[i + 1] + in[i - n] + in[i + n]);
    difference = (next - in[i]) * (next - in[i]);
    out[i] = next;
  }
  sums[t] = difference;
  __syncthreads();
  for (int s = blockDim.x * blockDim.y / 2; s > 0; s /= 2) {
    if (t < s) sums[t] += sums[t + s];
    __syncthreads();
  }
  if (t == 0) atomicAdd(change, sums[0]);
}

version jacobi(int n) {
  auto start = make<float>(inputs(std::size_t(n) * n)), a = make<float>(std::size_t(n) * n),
       b = make<float>(std::size_t(n) * n), change = make<float>(1);
  return {[=] {
            a->copy(*start);
            b->copy(*start);
            dim3 block(16, 16), grid(parts(n, 16), parts(n, 16));
            for (int s = 0; s < jacobi_steps; ++s) {
              change->clear();
              jacobi_kernel<<<grid, block>>>(s % 2 ? b->get() : a->get(), s % 2 ? a->get() : b->get(), change->get(),
                                             n);
            }
            finish();
          },
          [=] {
            std::vector<double> values = a->values();
            values.push_back(change->values()[0] * 1e-3);
            return values;
          }};
}

// A step of Jacobi's method for a x = b. Each warp computes one row, and a block has eight warps.
__global__ void system_kernel(const float* a, const double* b, const double* x, double* next, double* change, int n) {
  const int lane = threadIdx.x, row = blockIdx.x * blockDim.y + threadIdx.y;
  __shared__ double changes[8];
  double rest = 0;
  for (int k = lane; k < n; k += 32) rest += a[row * n + k] * x[k];
  for (int s = 16; s > 0; s /= 2) rest += __shfl_down_sync(~0U, rest, s);
  if (lane == 0) {
    rest = (b[row] - rest) / a[row * n + row];
    next[row] = x[row] + rest;
    changes[threadIdx.y] = fabs(rest);
  }
  __syncthreads();
  if (threadIdx.y > 0 || lane >= 8) return;
  double sum = changes[lane];
  for (int s = 4; s > 0; s /= 2) sum += __shfl_down_sync(0xff, sum, s, 8);
  if (lane == 0) atomicAdd(change, sum);
}

// The steps, fills and copies are the nodes of a CUDA graph. n must be a multiple of 8.
version linear_system(int n) {
  auto a = make<float>(system_matrix(n));
  auto b = make<double>(std::vector<double>(n, 2.0 * n)), x = make<double>(n), next = make<double>(n),
       change = make<double>(1);
  cudaStream_t stream = nullptr;
  cudaGraph_t captured = nullptr;
  cudaGraphExec_t made = nullptr;
  check(cudaStreamCreate(&stream));
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  check(cudaMemsetAsync(x->get(), 0, n * sizeof(double), stream));
  for (int s = 0; s < jacobi_steps; ++s) {
    check(cudaMemsetAsync(change->get(), 0, sizeof(double), stream));
    system_kernel<<<n / 8, dim3(32, 8), 0, stream>>>(a->get(), b->get(), s % 2 ? next->get() : x->get(),
                                                     s % 2 ? x->get() : next->get(), change->get(), n);
  }
  check(cudaStreamEndCapture(stream, &captured));
  check(cudaGraphInstantiate(&made, captured, 0));
  check(cudaGraphDestroy(captured));
  const std::shared_ptr<CUgraphExec_st> graph(made, cudaGraphExecDestroy);
  const std::shared_ptr<CUstream_st> queue(stream, cudaStreamDestroy);
  const auto used = std::make_tuple(a, b, next);  // keeps alive the arrays that the graph's nodes use
  return {[=] {
            static_cast<void>(used);
            check(cudaGraphLaunch(graph.get(), queue.get()));
            check(cudaStreamSynchronize(queue.get()));
          },
          [=] {
            std::vector<double> values = x->values();
            values.push_back(change->values()[0]);
            return values;
          }};
}

__global__ void product_kernel(const float* a, const float* b, float* c, int n) {
  int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= n || column >= n) return;
  float sum = 0;
  for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + column];
  c[row * n + column] = sum;
}

__global__ void tiled_product_kernel(const float* a, const float* b, float* c, int n) {
  __shared__ float left[16][16], right[16][16];
  int x = threadIdx.x, y = threadIdx.y, column = blockIdx.x * 16 + x, row = blockIdx.y * 16 + y;
  float sum = 0;
  for (int first = 0; first < n; first += 16) {
    left[y][x] = a[row * n + first + x];
    right[y][x] = b[(first + y) * n + column];
    __syncthreads();
    for (int k = 0; k < 16; ++k) sum += left[y][k] * right[k][x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}

namespace {
version any_product(int n, void (*kernel)(const float*, const float*, float*, int)) {
  auto a = make<float>(inputs(std::size_t(n) * n)), b = make<float>(inputs(std::size_t(n) * n)),
       c = make<float>(std::size_t(n) * n);
  return {[=] {
            kernel<<<dim3(parts(n, 16), parts(n, 16)), dim3(16, 16)>>>(a->get(), b->get(), c->get(), n);
            finish();
          },
          [=] { return c->values(); }};
}
}  // namespace

version product(int n) { return any_product(n, product_kernel); }
version tiled_product(int n) { return any_product(n, tiled_product_kernel); }

__global__ void sparse_product_kernel(const int* first, const int* column, const double* value, const double* x,
                                      double* y, int rows) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  double sum = 0;
  for (int i = first[row]; i < first[row + 1]; ++i) sum += value[i] * x[column[i]];
  y[row] = sum;
}

version sparse_product(int n) {
  const sparse_matrix m = make_sparse(n);
  const std::vector<float> some = inputs(n);
  auto first = make<int>(m.first), column = make<int>(m.column);
  auto value = make<double>(m.value), x = make<double>(std::vector<double>(some.begin(), some.end())),
       y = make<double>(n);
  return {[=] {
            sparse_product_kernel<<<parts(n, 128), 128>>>(first->get(), column->get(), value->get(), x->get(), y->get(),
                                                          n);
            finish();
          },
          [=] { return y->values(); }};
}

__constant__ float weights[(2 * filter_radius + 1) * (2 * filter_radius + 1)];

__global__ void convolution_kernel(const float* in, float* out, int n) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= n || y >= n) return;
  float sum = 0;
  for (int dy = -filter_radius; dy <= filter_radius; ++dy)
    for (int dx = -filter_radius; dx <= filter_radius; ++dx) {
      int u = min(max(x + dx, 0), n - 1), v = min(max(y + dy, 0), n - 1);
      sum += weights[(dy + filter_radius) * (2 * filter_radius + 1) + dx + filter_radius] * in[v * n + u];
    }
  out[y * n + x] = sum;
}

version convolution(int n) {
  const std::vector<float> w = filter_weights();
  check(cudaMemcpyToSymbol(weights, w.data(), w.size() * sizeof(float)));
  auto in = make<float>(inputs(std::size_t(n) * n)), out = make<float>(std::size_t(n) * n);
  return {[=] {
            convolution_kernel<<<dim3(parts(n, 32), parts(n, 8)), dim3(32, 8)>>>(in->get(), out->get(), n);
            finish();
          },
          [=] { return out->values(); }};
}

__device__ void order(unsigned char& a, unsigned char& b) {
  unsigned char low = min(a, b);
  b = max(a, b);
  a = low;
}

__global__ void median_filter_kernel(const unsigned char* in, unsigned char* out, int n) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < 1 || y < 1 || x >= n - 1 || y >= n - 1) return;
  unsigned char v[9];
  for (int k = 0; k < 9; ++k) v[k] = in[(y + k / 3 - 1) * n + x + k % 3 - 1];
  for (int end = 8; end >= 4; --end)
    for (int k = 0; k < end; ++k) order(v[k], v[k + 1]);
  out[y * n + x] = v[4];
}

version median_filter(int n) {
  auto in = make<unsigned char>(input_bytes(std::size_t(n) * n)),
       out = make<unsigned char>(input_bytes(std::size_t(n) * n));
  return {[=] {
            median_filter_kernel<<<dim3(parts(n, 32), parts(n, 8)), dim3(32, 8)>>>(in->get(), out->get(), n);
            finish();
          },
          [=] { return out->values(); }};
}

__global__ void mandelbrot_kernel(int* out, int n) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= n || y >= n) return;
  double cr = -2.0 + 2.5 * x / n, ci = -1.25 + 2.5 * y / n, zr = 0, zi = 0;
  int k = 0;
  while (k < most_iterations && zr * zr + zi * zi < 4.0) {
    double next = zr * zr - zi * zi + cr;
    zi = 2 * zr * zi + ci;
    zr = next;
    ++k;
  }
  out[y * n + x] = k;
}

version mandelbrot(int n) {
  auto out = make<int>(std::size_t(n) * n);
  return {[=] {
            mandelbrot_kernel<<<dim3(parts(n, 16), parts(n, 16)), dim3(16, 16)>>>(out->get(), n);
            finish();
          },
          [=] { return out->values(); }};
}

// Newton's method for z^3 = 1, with complex numbers in double precision, in each thread.
__global__ void complex_roots_kernel(double2* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n * n) return;
  double zr = 0.5 + double(i % n) / n, zi = 0.5 + double(i / n) / n;
  for (int k = 0; k < 30; ++k) {
    double sr = zr * zr - zi * zi, si = 2 * zr * zi;            // z^2
    double cr = sr * zr - si * zi - 1, ci = sr * zi + si * zr;  // z^3 - 1
    double dr = 3 * sr, di = 3 * si, norm = dr * dr + di * di;
    zr -= (cr * dr + ci * di) / norm;
    zi -= (ci * dr - cr * di) / norm;
  }
  out[i] = make_double2(zr, zi);
}

version complex_roots(int n) {
  auto out = make<double>(std::size_t(n) * n * 2);
  return {[=] {
            complex_roots_kernel<<<parts(n * n, 128), 128>>>(reinterpret_cast<double2*>(out->get()), n);
            finish();
          },
          [=] { return out->values(); }};
}

__global__ void transpose_kernel(const float* in, float* out, int n) {
  __shared__ float tile[32][33];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int r = 0; r < 32; r += 8) tile[threadIdx.y + r][threadIdx.x] = in[(y + r) * n + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  for (int r = 0; r < 32; r += 8) out[(y + r) * n + x] = tile[threadIdx.x][threadIdx.y + r];
}

version transpose(int n) {
  auto in = make<float>(inputs(std::size_t(n) * n)), out = make<float>(std::size_t(n) * n);
  return {[=] {
            transpose_kernel<<<dim3(n / 32, n / 32), dim3(32, 8)>>>(in->get(), out->get(), n);
            finish();
          },
          [=] { return out->values(); }};
}

}  // namespace hpe::bench::pairs::cuda
