// The CUDA versions of the programs on lists, sorting and numbers.

#include "bench/pairs/cuda_arrays.h"

namespace hpe::bench::pairs::cuda {

__global__ void triad_kernel(const float* a, const float* b, float* c, float s, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + s * b[i];
}

version triad(int n) {
  auto a = make<float>(inputs(n)), b = make<float>(inputs(n)), c = make<float>(n);
  return {[=] {
            triad_kernel<<<parts(n, 256), 256>>>(a->get(), b->get(), c->get(), 1.5F, n);
            finish();
          },
          [=] { return c->values(); }};
}

__global__ void reduction_kernel(const float* in, float* sum, int n) {
  extern __shared__ float part[];
  float own = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) own += in[i];
  part[threadIdx.x] = own;
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (threadIdx.x < s) part[threadIdx.x] += part[threadIdx.x + s];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(sum, part[0]);
}

version reduction(int n) {
  auto in = make<float>(inputs(n)), sum = make<float>(1);
  return {[=] {
            sum->clear();
            reduction_kernel<<<256, 256, 256 * sizeof(float)>>>(in->get(), sum->get(), n);
            finish();
          },
          [=] { return sum->values(); }};
}

// Inclusive prefix sums of the 256 elements of each block, by the method of Hillis and Steele.
__global__ void scan_kernel(const int* in, int* out, int* totals, int n) {
  __shared__ int part[2][256];
  int i = blockIdx.x * 256 + threadIdx.x, t = threadIdx.x, from = 0;
  part[0][t] = i < n ? in[i] : 0;
  __syncthreads();
  for (int d = 1; d < 256; d *= 2) {
    int value = part[from][t];
    if (t >= d) value += part[from][t - d];
    part[1 - from][t] = value;
    from = 1 - from;
    __syncthreads();
  }
  if (i < n) out[i] = part[from][t];
  if (totals != nullptr && t == 255) totals[blockIdx.x] = part[from][t];
}

__global__ void add_totals_kernel(int* out, const int* totals, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (blockIdx.x > 0 && i < n) out[i] += totals[blockIdx.x - 1];
}

version scan(int n) {
  std::vector<int> values(n);
  for (int i = 0; i < n; ++i) values[i] = int(input(i) * 100);
  const int blocks = parts(n, 256), groups = parts(blocks, 256);
  auto in = make<int>(values), out = make<int>(n), totals = make<int>(blocks), tops = make<int>(groups),
       top = make<int>(1);
  return {[=] {
            scan_kernel<<<blocks, 256>>>(in->get(), out->get(), totals->get(), n);
            scan_kernel<<<groups, 256>>>(totals->get(), totals->get(), tops->get(), blocks);
            scan_kernel<<<1, 256>>>(tops->get(), tops->get(), top->get(), groups);
            add_totals_kernel<<<groups, 256>>>(totals->get(), tops->get(), blocks);
            add_totals_kernel<<<blocks, 256>>>(out->get(), totals->get(), n);
            finish();
          },
          [=] { return out->values(); }};
}

// Each block computes one Fourier transform of 1024 points, by Stockham's method.
__global__ void fft_kernel(const float2* in, float2* out) {
  __shared__ float2 data[2][fft_points];
  int t = threadIdx.x, from = 0;
  for (int i = t; i < fft_points; i += blockDim.x) data[0][i] = in[blockIdx.x * fft_points + i];
  __syncthreads();
  for (int size = 1; size < fft_points; size *= 2) {
    for (int b = t; b < fft_points / 2; b += blockDim.x) {
      int k = b & (size - 1);
      float sine, cosine;
      sincospif(-float(k) / size, &sine, &cosine);
      float2 u = data[from][b], v = data[from][b + fft_points / 2];
      float2 w = make_float2(v.x * cosine - v.y * sine, v.x * sine + v.y * cosine);
      int to = 2 * (b - k) + k;
      data[1 - from][to] = make_float2(u.x + w.x, u.y + w.y);
      data[1 - from][to + size] = make_float2(u.x - w.x, u.y - w.y);
    }
    from = 1 - from;
    __syncthreads();
  }
  for (int i = t; i < fft_points; i += blockDim.x) out[blockIdx.x * fft_points + i] = data[from][i];
}

version fft(int n) {
  auto in = make<float>(inputs(std::size_t(n) * fft_points * 2)), out = make<float>(std::size_t(n) * fft_points * 2);
  return {[=] {
            fft_kernel<<<n, 256>>>(reinterpret_cast<const float2*>(in->get()), reinterpret_cast<float2*>(out->get()));
            finish();
          },
          [=] { return out->values(); }};
}

__global__ void n_body_kernel(const float4* bodies, float3* force, int n) {
  __shared__ float4 tile[128];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float4 own = bodies[min(i, n - 1)];
  float3 sum = make_float3(0, 0, 0);
  for (int first = 0; first < n; first += 128) {
    tile[threadIdx.x] = first + threadIdx.x < n ? bodies[first + threadIdx.x] : make_float4(0, 0, 0, 0);
    __syncthreads();
    for (int j = 0; j < 128; ++j) {
      float dx = tile[j].x - own.x, dy = tile[j].y - own.y, dz = tile[j].z - own.z;
      float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 1e-3F);
      float s = tile[j].w * inverse * inverse * inverse;
      sum.x += dx * s;
      sum.y += dy * s;
      sum.z += dz * s;
    }
    __syncthreads();
  }
  if (i < n) force[i] = sum;
}

version n_body(int n) {
  auto bodies = make<float>(inputs(std::size_t(n) * 4)), force = make<float>(std::size_t(n) * 3);
  return {[=] {
            n_body_kernel<<<parts(n, 128), 128>>>(reinterpret_cast<const float4*>(bodies->get()),
                                                  reinterpret_cast<float3*>(force->get()), n);
            finish();
          },
          [=] { return force->values(); }};
}

// Each thread simulates random paths of a price, with its own random number generator.
__global__ void monte_carlo_kernel(float* payoff, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned state = 1234567U + 7919U * i;
  float sum = 0;
  for (int p = 0; p < paths_per_thread; ++p) {
    float price = 100;
    for (int step = 0; step < 4; ++step) {
      float uniform = 0;
      for (int k = 0; k < 4; ++k) {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        uniform += (state >> 8) * 0x1p-24F;
      }
      price *= expf(0.01F + 0.2F * (uniform - 2.0F));
    }
    sum += fmaxf(price - 100.0F, 0.0F);
  }
  payoff[i] = sum / paths_per_thread;
}

version monte_carlo(int n) {
  auto payoff = make<float>(n);
  return {[=] {
            monte_carlo_kernel<<<parts(n, 256), 256>>>(payoff->get(), n);
            finish();
          },
          [=] { return payoff->values(); }};
}

__global__ void bitonic_global_kernel(unsigned* data, int j, int k) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int other = i ^ j;
  if (other <= i) return;
  unsigned a = data[i], b = data[other];
  if ((a > b) == ((i & k) == 0)) {
    data[i] = b;
    data[other] = a;
  }
}

// The steps of a bitonic sort that compare elements within the same tile of 512 elements.
__global__ void bitonic_shared_kernel(unsigned* data, int first_k, int last_k, int j) {
  __shared__ unsigned tile[512];
  int i = blockIdx.x * blockDim.x + threadIdx.x, t = threadIdx.x;
  tile[t] = data[i];
  __syncthreads();
  for (int k = first_k; k <= last_k; k *= 2) {
    for (; j > 0; j /= 2) {
      int other = t ^ j;
      if (other > t) {
        unsigned a = tile[t], b = tile[other];
        if ((a > b) == ((i & k) == 0)) {
          tile[t] = b;
          tile[other] = a;
        }
      }
      __syncthreads();
    }
    j = k;
  }
  data[i] = tile[t];
}

version bitonic_sort(int n) {
  auto start = make<unsigned>(input_keys(n)), data = make<unsigned>(n);
  return {[=] {
            data->copy(*start);
            bitonic_shared_kernel<<<n / 512, 512>>>(data->get(), 2, 512, 1);
            for (int k = 1024; k <= n; k *= 2) {
              int j = k / 2;
              for (; j >= 512; j /= 2) bitonic_global_kernel<<<n / 512, 512>>>(data->get(), j, k);
              bitonic_shared_kernel<<<n / 512, 512>>>(data->get(), k, k, j);
            }
            finish();
          },
          [=] { return data->values(); }};
}

// Sorts 24-bit keys, 4 bits at a time: counts the digits of each tile, computes prefix sums of the counts, and scatters
// the keys stably.
__global__ void radix_count_kernel(const unsigned* in, unsigned* counts, int shift, int n) {
  __shared__ unsigned bins[16];
  if (threadIdx.x < 16) bins[threadIdx.x] = 0;
  __syncthreads();
  for (int i = threadIdx.x; i < sort_tile; i += blockDim.x) {
    int at = blockIdx.x * sort_tile + i;
    if (at < n) atomicAdd(&bins[in[at] >> shift & 15], 1U);
  }
  __syncthreads();
  if (threadIdx.x < 16) counts[threadIdx.x * gridDim.x + blockIdx.x] = bins[threadIdx.x];
}

__global__ void radix_scan_kernel(unsigned* counts, int n) {
  __shared__ unsigned sums[1024];
  int t = threadIdx.x, each = (n + 1023) / 1024;
  unsigned own = 0;
  for (int i = t * each; i < min((t + 1) * each, n); ++i) own += counts[i];
  sums[t] = own;
  __syncthreads();
  for (int d = 1; d < 1024; d *= 2) {
    unsigned more = t >= d ? sums[t - d] : 0;
    __syncthreads();
    sums[t] += more;
    __syncthreads();
  }
  unsigned before = sums[t] - own;
  for (int i = t * each; i < min((t + 1) * each, n); ++i) {
    unsigned count = counts[i];
    counts[i] = before;
    before += count;
  }
}

__global__ void radix_scatter_kernel(const unsigned* in, unsigned* out, const unsigned* starts, int shift, int n) {
  __shared__ unsigned ranks[16][256];
  int t = threadIdx.x, each = sort_tile / 256, begin = blockIdx.x * sort_tile + t * each;
  for (int d = 0; d < 16; ++d) ranks[d][t] = 0;
  for (int k = 0; k < each; ++k)
    if (begin + k < n) ++ranks[in[begin + k] >> shift & 15][t];
  __syncthreads();
  if (t < 16) {
    unsigned sum = starts[t * gridDim.x + blockIdx.x];
    for (int other = 0; other < 256; ++other) {
      unsigned count = ranks[t][other];
      ranks[t][other] = sum;
      sum += count;
    }
  }
  __syncthreads();
  for (int k = 0; k < each; ++k)
    if (begin + k < n) out[ranks[in[begin + k] >> shift & 15][t]++] = in[begin + k];
}

version radix_sort(int n) {
  const int tiles = parts(n, sort_tile);
  auto start = make<unsigned>(input_keys(n)), a = make<unsigned>(n), b = make<unsigned>(n),
       counts = make<unsigned>(16 * tiles);
  return {[=] {
            a->copy(*start);
            for (int pass = 0; pass < 6; ++pass) {
              unsigned *from = pass % 2 ? b->get() : a->get(), *to = pass % 2 ? a->get() : b->get();
              radix_count_kernel<<<tiles, 256>>>(from, counts->get(), 4 * pass, n);
              radix_scan_kernel<<<1, 1024>>>(counts->get(), 16 * tiles);
              radix_scatter_kernel<<<tiles, 256>>>(from, to, counts->get(), 4 * pass, n);
            }
            finish();
          },
          [=] { return a->values(); }};
}

__global__ void histogram_kernel(const unsigned char* in, unsigned* bins, int n) {
  __shared__ unsigned own[256];
  own[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) atomicAdd(&own[in[i]], 1U);
  __syncthreads();
  atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}

version histogram(int n) {
  auto in = make<unsigned char>(input_bytes(n));
  auto bins = make<unsigned>(256);
  return {[=] {
            bins->clear();
            histogram_kernel<<<64, 256>>>(in->get(), bins->get(), n);
            finish();
          },
          [=] { return bins->values(); }};
}

__device__ float normal_distribution(float d) {
  float k = 1.0F / (1.0F + 0.2316419F * fabsf(d));
  float tail = 0.39894228F * expf(-0.5F * d * d) *
               (k * (0.31938153F + k * (-0.356563782F + k * (1.781477937F + k * (-1.821255978F + k * 1.330274429F)))));
  return d > 0 ? 1.0F - tail : tail;
}

__global__ void black_scholes_kernel(const float* random, float* call, float* put, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float price = 5 + 25 * random[i], strike = 1 + 99 * random[n + i], years = 0.25F + 9.75F * random[2 * n + i];
  const float rate = 0.02F, volatility = 0.3F;
  float root = sqrtf(years);
  float d1 = (logf(price / strike) + (rate + 0.5F * volatility * volatility) * years) / (volatility * root);
  float d2 = d1 - volatility * root;
  float n1 = normal_distribution(d1), n2 = normal_distribution(d2), discounted = strike * expf(-rate * years);
  call[i] = price * n1 - discounted * n2;
  put[i] = discounted * (1.0F - n2) - price * (1.0F - n1);
}

version black_scholes(int n) {
  auto random = make<float>(inputs(3 * std::size_t(n))), call = make<float>(n), put = make<float>(n);
  return {[=] {
            black_scholes_kernel<<<parts(n, 256), 256>>>(random->get(), call->get(), put->get(), n);
            finish();
          },
          [=] {
            std::vector<double> values = call->values();
            for (double v : put->values()) values.push_back(v);
            return values;
          }};
}

// Finds the nearest of 16 cluster centres for each point, which has four coordinates.
__global__ void k_means_kernel(const float4* points, const float4* centres, int* nearest, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float4 p = points[i];
  float best = 1e30F;
  int which = 0;
  for (int c = 0; c < clusters; ++c) {
    float4 q = centres[c];
    float d =
        (p.x - q.x) * (p.x - q.x) + (p.y - q.y) * (p.y - q.y) + (p.z - q.z) * (p.z - q.z) + (p.w - q.w) * (p.w - q.w);
    if (d < best) {
      best = d;
      which = c;
    }
  }
  nearest[i] = which;
}

version k_means(int n) {
  auto points = make<float>(inputs(std::size_t(n) * 4)), centres = make<float>(inputs(4 * clusters));
  auto nearest = make<int>(n);
  return {[=] {
            k_means_kernel<<<parts(n, 256), 256>>>(reinterpret_cast<const float4*>(points->get()),
                                                   reinterpret_cast<const float4*>(centres->get()), nearest->get(), n);
            finish();
          },
          [=] { return nearest->values(); }};
}

}  // namespace hpe::bench::pairs::cuda
