#include <map>
#include <stdexcept>

#include "bench/cuda/checked_kernels.h"

namespace hpe::bench {

namespace {

constexpr int side = 2048, n = side * side, tile = 32, rows = 8;

__global__ void saxpy(float* y, const float* x) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i] + y[i];
}

__global__ void stencil(float* to, const float* from) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < 1 || y < 1 || x >= side - 1 || y >= side - 1) return;
  const int i = y * side + x;
  to[i] = 0.25f * (from[i - 1] + from[i + 1] + from[i - side] + from[i + side]) - from[i];
}

__global__ void sum(float* sums, const float* x) {
  __shared__ float part[256];
  float own = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) own += x[i];
  part[threadIdx.x] = own;
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = part[0];
}

__global__ void transpose(float* to, const float* from) {
  __shared__ float part[tile][tile + 1];
  int x = blockIdx.x * tile + threadIdx.x, y = blockIdx.y * tile + threadIdx.y;
  for (int k = 0; k < tile; k += rows) part[threadIdx.y + k][threadIdx.x] = from[(y + k) * side + x];
  __syncthreads();
  x = blockIdx.y * tile + threadIdx.x, y = blockIdx.x * tile + threadIdx.y;
  for (int k = 0; k < tile; k += rows) to[(y + k) * side + x] = part[threadIdx.x][threadIdx.y + k];
}

__global__ void gather(float* to, const float* from, const int* at) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] = from[at[i]];
}

void must_succeed(cudaError_t status) {
  if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
}

template <class T>
class array {
 public:
  array() {
    must_succeed(cudaMalloc(&data_, n * sizeof(T)));
    must_succeed(cudaMemset(data_, 0, n * sizeof(T)));
  }
  ~array() { cudaFree(data_); }
  array(const array&) = delete;
  array& operator=(const array&) = delete;
  operator T*() const { return data_; }

 private:
  T* data_ = nullptr;
};

struct arrays {
  array<float> x, y;
  array<int> at;  // random indices
};

const std::map<std::string, void (*)(const arrays&)>& launches_by_name() {
  static const std::map<std::string, void (*)(const arrays&)> all{
      {"saxpy", [](const arrays& a) { saxpy<<<n / 256, 256>>>(a.y, a.x); }},
      {"stencil", [](const arrays& a) { stencil<<<dim3(side / tile, side / rows), dim3(tile, rows)>>>(a.y, a.x); }},
      {"sum", [](const arrays& a) { sum<<<1024, 256>>>(a.y, a.x); }},
      {"transpose", [](const arrays& a) { transpose<<<dim3(side / tile, side / tile), dim3(tile, rows)>>>(a.y, a.x); }},
      {"gather", [](const arrays& a) { gather<<<n / 256, 256>>>(a.y, a.x, a.at); }},
  };
  return all;
}

}  // namespace

const std::vector<std::string>& checked_kernels() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> result;
    for (const auto& each : launches_by_name()) result.push_back(each.first);
    return result;
  }();
  return names;
}

void launch_checked_kernel(const std::string& name, unsigned launches) {
  const arrays all;
  std::vector<int> indices(n);
  unsigned random = 1;
  for (int& each : indices) each = (random = random * 1664525U + 1013904223U) % n;
  must_succeed(cudaMemcpy(all.at, indices.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  for (unsigned k = 0; k < launches; ++k) launches_by_name().at(name)(all);
  must_succeed(cudaDeviceSynchronize());
}

}  // namespace hpe::bench
