// Fifty kernels of five kinds: a stencil, a reduction over a block, a tiled matrix product, special functions, and a
// sort of a block's values.

#include <stdexcept>
#include <utility>
#include <vector>

#include "bench/cuda/fifty_kernels.h"

namespace {

constexpr int kernels = 50;
constexpr int threads = 128;
constexpr int count = 1024;

__device__ float stencil(const float* in, int i, int radius) {
  float sum = 0;
  for (int d = -radius; d <= radius; ++d) sum += in[(i + d + count) % count] / (1 + d * d);
  return sum;
}

__device__ float reduction(float value) {
  __shared__ float values[threads];
  const int t = static_cast<int>(threadIdx.x);
  values[t] = value;
  for (int step = threads / 2; step > 0; step /= 2) {
    __syncthreads();
    if (t < step) values[t] += values[t + step];
  }
  __syncthreads();
  return values[0];
}

__device__ float product(const float* in, int i, int n) {
  __shared__ float a[threads], b[threads];
  const int t = static_cast<int>(threadIdx.x);
  float sum = 0;
  for (int tile = 0; tile < n; ++tile) {
    a[t] = in[(i + tile * threads) % count];
    b[t] = in[(i * 7 + tile) % count];
    __syncthreads();
    for (int k = 0; k < 16; ++k) sum += a[(t & ~15) + k] * b[(t * 16 + k) % threads];
    __syncthreads();
  }
  return sum;
}

__device__ float special(float x, int n) {
  for (int k = 0; k < n; ++k) x = expf(-x * x) + sinf(x) * logf(1 + x * x) + powf(fabsf(x), 0.3F);
  return x;
}

__device__ float sorted(float value, int stride) {
  __shared__ float keys[threads];
  const int t = static_cast<int>(threadIdx.x);
  keys[t * stride % threads] = value;
  for (int size = 2; size <= threads; size *= 2)
    for (int step = size / 2; step > 0; step /= 2) {
      __syncthreads();
      const int other = t ^ step;
      const bool up = (t & size) == 0;
      if (other > t && (keys[t] > keys[other]) == up) {
        const float kept = keys[t];
        keys[t] = keys[other];
        keys[other] = kept;
      }
    }
  __syncthreads();
  return keys[t];
}

template <int number>
__global__ void kernel(const float* in, float* out) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  constexpr int variant = number / 5;
  if constexpr (number % 5 == 0) out[i] = stencil(in, i, variant + 1);
  if constexpr (number % 5 == 1) out[i] = reduction(in[i] + variant);
  if constexpr (number % 5 == 2) out[i] = product(in, i, variant + 2);
  if constexpr (number % 5 == 3) out[i] = special(in[i], variant + 1);
  if constexpr (number % 5 == 4) out[i] = sorted(in[i], 2 * variant + 1);
}

template <int... numbers>
void launch_all(const float* in, float* out, std::integer_sequence<int, numbers...>) {
  (kernel<numbers><<<count / threads, threads>>>(in, out + numbers * count), ...);
}

}  // namespace

double hpe::bench::launch_fifty_kernels() {
  std::vector<float> in(count), out(kernels * count);
  for (int i = 0; i < count; ++i) in[static_cast<std::size_t>(i)] = static_cast<float>(i * 37 % 101) / 101;
  float *device_in = nullptr, *device_out = nullptr;
  cudaMalloc(&device_in, in.size() * sizeof(float));
  cudaMalloc(&device_out, out.size() * sizeof(float));
  cudaMemcpy(device_in, in.data(), in.size() * sizeof(float), cudaMemcpyHostToDevice);
  launch_all(device_in, device_out, std::make_integer_sequence<int, kernels>());
  cudaMemcpy(out.data(), device_out, out.size() * sizeof(float), cudaMemcpyDeviceToHost);
  if (const cudaError_t failed = cudaGetLastError(); failed != cudaSuccess)
    throw std::runtime_error(cudaGetErrorString(failed));
  double sum = 0;
  for (const float value : out) sum += value;
  return sum;
}
