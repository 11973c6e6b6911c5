// Measures single launches whose data is larger than the memory that hpe may use, and a model whose weights are one
// buffer. The program is written for one GPU and does not use hpe itself. Its digests do not depend on the amount of
// memory.
//
//   larger_kernels link                          rates of pinned copies: to the device, and in both directions at once
//   larger_kernels triad MEBIBYTES               a = b + s * c
//   larger_kernels stencil MEBIBYTES             five points in two dimensions
//   larger_kernels product MEBIBYTES             a tall matrix times a matrix of 32 x 32
//   larger_kernels reduction MEBIBYTES           a sum for each block
//   larger_kernels transpose MEBIBYTES           of a square matrix
//   larger_kernels tokens MEBIBYTES [LAYERS]     matrix-vector products with all weights, captured in a graph, with
//   activations
//                                                in memory that the program maps itself
//
// MEBIBYTES is the size of all arrays together. Each run prints the median time of a launch, the bytes that any way of
// moving the data must bring to the device and back for each launch, and a digest of the result.
#include <cuda.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "tests/interpose/programs/check.h"

constexpr size_t mebi = size_t{1} << 20;
constexpr int threads = 256;
constexpr int before = 18;  // under hpe, these launches pin host memory, and try whether to use data in host memory
constexpr int launches = 7;

__device__ unsigned mixed(size_t i) {
  unsigned long long z = i * 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  return static_cast<unsigned>(z >> 33);
}

__global__ void fill(float* a, size_t first, size_t count, float scale) {
  const size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x;
  if (i < count) a[first + i] = scale * static_cast<float>(mixed(first + i) % 1024);
}

// Adds the bits of the words to *sum, in an order that does not matter.
__global__ void add_bits(const unsigned* a, size_t first, size_t count, unsigned long long* sum) {
  const size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x;
  unsigned long long mine = i < count ? a[first + i] * (2 * (first + i) + 1) : 0;
  for (int lane = 16; lane > 0; lane /= 2) mine += __shfl_down_sync(~0U, mine, lane);
  if (threadIdx.x % 32 == 0) atomicAdd(sum, mine);
}

__global__ void triad(float* a, const float* b, const float* c, float s, size_t n) {
  const size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x;
  if (i < n) a[i] = b[i] + s * c[i];
}

__global__ void stencil(float* to, const float* from, size_t rows, size_t columns) {
  const size_t x = blockIdx.x * size_t{blockDim.x} + threadIdx.x, y = blockIdx.y * size_t{blockDim.y} + threadIdx.y;
  if (x < 1 || y < 1 || x + 1 >= columns || y + 1 >= rows) return;
  const float* const p = from + y * columns + x;
  to[y * columns + x] = 0.2F * (p[0] + p[-1] + p[1] + *(p - columns) + p[columns]);
}

constexpr int small = 32;
__global__ void product(float* to, const float* from, const float* matrix, size_t rows) {
  const size_t row = blockIdx.x * size_t{blockDim.y} + threadIdx.y;
  if (row >= rows) return;
  float sum = 0;
  for (int k = 0; k < small; ++k) sum += from[row * small + k] * matrix[k * small + threadIdx.x];
  to[row * small + threadIdx.x] = sum;
}

__global__ void reduction(float* sums, const float* from, size_t n) {
  __shared__ float part[threads];
  const size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x;
  part[threadIdx.x] = i < n ? from[i] : 0;
  for (int half = threads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = part[0];
}

constexpr int tile = 32;
__global__ void transpose(float* to, const float* from, size_t side) {
  __shared__ float part[tile][tile + 1];
  const size_t x = blockIdx.x * size_t{tile} + threadIdx.x, y = blockIdx.y * size_t{tile} + threadIdx.y;
  for (int r = 0; r < tile; r += 8) part[threadIdx.y + r][threadIdx.x] = from[(y + r) * side + x];
  __syncthreads();
  const size_t tx = blockIdx.y * size_t{tile} + threadIdx.x, ty = blockIdx.x * size_t{tile} + threadIdx.y;
  for (int r = 0; r < tile; r += 8) to[(ty + r) * side + tx] = part[threadIdx.x][threadIdx.y + r];
}

static double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

static unsigned blocks_of(size_t count) { return static_cast<unsigned>((count + threads - 1) / threads); }

constexpr size_t slab = 16 * mebi;  // elements in a launch that fills an array or reads it for the digest

static float* filled(size_t count, float scale = 1) {
  float* made = nullptr;
  CHECK(cudaMalloc(&made, count * sizeof(float)));
  for (size_t at = 0; at < count; at += slab) {
    const size_t here = std::min(slab, count - at);
    fill<<<blocks_of(here), threads>>>(made, at, here, scale);
  }
  CHECK(cudaGetLastError());
  return made;
}

static unsigned long long digest_of(const float* array, size_t count) {
  unsigned long long* sum = nullptr;
  unsigned long long result = 0;
  CHECK(cudaMalloc(&sum, sizeof *sum));
  CHECK(cudaMemset(sum, 0, sizeof *sum));
  for (size_t at = 0; at < count; at += slab) {
    const size_t here = std::min(slab, count - at);
    add_bits<<<blocks_of(here), threads>>>(reinterpret_cast<const unsigned*>(array), at, here, sum);
  }
  CHECK(cudaMemcpy(&result, sum, sizeof result, cudaMemcpyDeviceToHost));
  return result;
}

// Prints the median time of the launches, and the MiB that a launch reads and writes.
template <class Launch>
static void measure(const std::string& name, size_t read, size_t written, const Launch& launch) {
  std::vector<double> seconds;
  for (int n = 0; n < before + launches; ++n) {
    const double begin = now();
    launch();
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    if (n >= before) seconds.push_back(now() - begin);
  }
  std::sort(seconds.begin(), seconds.end());
  std::printf("%-10s %9.3f ms (%.3f to %.3f), reads %.0f MiB, writes %.0f MiB\n", name.c_str(),
              seconds[launches / 2] * 1e3, seconds.front() * 1e3, seconds.back() * 1e3,
              static_cast<double>(read) / mebi, static_cast<double>(written) / mebi);
}

static int link() {
  constexpr size_t part = 64 * mebi, parts = 32;
  char *up = nullptr, *down = nullptr, *to = nullptr, *from = nullptr;
  CHECK(cudaMallocHost(&up, part));
  CHECK(cudaMallocHost(&down, part));
  CHECK(cudaMalloc(&to, part));
  CHECK(cudaMalloc(&from, part));
  cudaStream_t upwards, downwards;
  CHECK(cudaStreamCreate(&upwards));
  CHECK(cudaStreamCreate(&downwards));
  for (const bool both : {false, true}) {
    std::vector<double> rates;
    for (int n = 0; n < 5; ++n) {
      const double begin = now();
      for (size_t p = 0; p < parts; ++p) {
        CHECK(cudaMemcpyAsync(to, up, part, cudaMemcpyHostToDevice, upwards));
        if (both) CHECK(cudaMemcpyAsync(down, from, part, cudaMemcpyDeviceToHost, downwards));
      }
      CHECK(cudaDeviceSynchronize());
      rates.push_back(static_cast<double>(part * parts) / (now() - begin) * 1e-9);
    }
    std::sort(rates.begin(), rates.end());
    std::printf("link %s: %.1f GB/s\n", both ? "in each direction at once" : "to the device", rates[2]);
  }
  return 0;
}

// ---- a model
// -----------------------------------------------------------------------------------------------------------

constexpr size_t width = 8192;

// One warp for each row: to = a bounded value of the row's product with x.
__global__ void layer(float* to, const __half* weights, const float* x, size_t rows) {
  const size_t row = (blockIdx.x * size_t{blockDim.x} + threadIdx.x) / 32;
  if (row >= rows) return;
  const uint4* const line = reinterpret_cast<const uint4*>(weights + row * width);
  float sum = 0;
  for (size_t k = threadIdx.x % 32; k < width / 8; k += 32) {
    const uint4 eight = line[k];
    const __half2* const pairs = reinterpret_cast<const __half2*>(&eight);
    for (int p = 0; p < 4; ++p) {
      const float2 w = __half22float2(pairs[p]);
      sum += w.x * x[k * 8 + 2 * p] + w.y * x[k * 8 + 2 * p + 1];
    }
  }
  for (int lane = 16; lane > 0; lane /= 2) sum += __shfl_down_sync(~0U, sum, lane);
  if (threadIdx.x % 32 == 0) to[row] = sum / (1 + fabsf(sum));
}

__global__ void fill_weights(__half* weights, size_t first, size_t count) {
  const size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x;
  if (i < count)
    weights[first + i] = __float2half(static_cast<float>(static_cast<int>(mixed(first + i) % 2001) - 1000) * 4e-5F);
}

// Memory that the program creates and maps, as the pools of inference programs do.
static float* mapped(size_t bytes) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  size_t granule = 0;
  cuMemGetAllocationGranularity(&granule, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  bytes = (bytes + granule - 1) / granule * granule;
  CUdeviceptr at = 0;
  CUmemGenericAllocationHandle memory;
  const CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  if (cuMemAddressReserve(&at, bytes, 0, 0, 0) != CUDA_SUCCESS ||
      cuMemCreate(&memory, bytes, &properties, 0) != CUDA_SUCCESS ||
      cuMemMap(at, bytes, 0, memory, 0) != CUDA_SUCCESS || cuMemSetAccess(at, bytes, &access, 1) != CUDA_SUCCESS) {
    std::printf("the program could not map %zu bytes\n", bytes);
    std::exit(1);
  }
  return reinterpret_cast<float*>(at);
}

static int tokens(size_t bytes, size_t layers) {
  const size_t rows = std::max(bytes / layers / width / sizeof(__half), width);
  const size_t count = rows * width;
  __half* weights = nullptr;
  CHECK(cudaMalloc(&weights, layers * count * sizeof(__half)));
  for (size_t at = 0; at < layers * count; at += slab) {
    const size_t here = std::min(slab, layers * count - at);
    fill_weights<<<blocks_of(here), threads>>>(weights, at, here);
  }
  CHECK(cudaDeviceSynchronize());
  const size_t places = std::max(rows, width);
  float* const x = mapped(2 * places * sizeof(float));
  std::vector<float> begin(2 * places, 0.0F);
  for (size_t i = 0; i < width; ++i) begin[i] = static_cast<float>(i % 17) * 0.1F - 0.8F;
  CHECK(cudaMemcpy(x, begin.data(), begin.size() * sizeof(float), cudaMemcpyHostToDevice));
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t step;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (size_t n = 0; n < layers; ++n)
    layer<<<blocks_of(rows * 32), threads, 0, stream>>>(x + (n + 1) % 2 * places, weights + n * count,
                                                        x + n % 2 * places, rows);
  if (layers % 2 == 1) CHECK(cudaMemcpyAsync(x, x + places, width * sizeof(float), cudaMemcpyDeviceToDevice, stream));
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&step, graph, 0));
  std::vector<float> out(width);
  measure("token", layers * count * sizeof(__half), 0, [&] {
    CHECK(cudaGraphLaunch(step, stream));
    CHECK(cudaMemcpyAsync(out.data(), x, width * sizeof(float), cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
  });
  std::printf("token      digest %016llx\n",
              static_cast<unsigned long long>(digest(out.data(), out.size() * sizeof(float))));
  return 0;
}

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "link") return link();
  const size_t bytes = argc > 2 ? std::strtoull(argv[2], nullptr, 10) * mebi : 0;
  if (bytes == 0) return std::printf("usage: larger_kernels KERNEL MEBIBYTES\n"), 2;
  const size_t words = bytes / sizeof(float);
  CHECK(cudaFree(nullptr));
  const float* result = nullptr;
  size_t results = 0;
  if (what == "tokens") return tokens(bytes, argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 24);
  if (what == "triad") {
    const size_t n = words / 3;
    float *a = filled(n), *b = filled(n), *c = filled(n, 0.5F);
    measure(what, 2 * n * 4, n * 4, [&] { triad<<<blocks_of(n), threads>>>(a, b, c, 3, n); });
    result = a, results = n;
  } else if (what == "stencil") {
    const size_t columns = 16384, rows = words / 2 / columns;
    float *to = filled(rows * columns), *from = filled(rows * columns);
    const dim3 block(64, 4), grid(columns / 64, static_cast<unsigned>((rows + 3) / 4));
    measure(what, rows * columns * 4, rows * columns * 4, [&] { stencil<<<grid, block>>>(to, from, rows, columns); });
    result = to, results = rows * columns;
  } else if (what == "product") {
    const size_t rows = words / 2 / small;
    float *to = filled(rows * small), *from = filled(rows * small), *matrix = filled(small * small, 0.01F);
    measure(what, rows * small * 4, rows * small * 4,
            [&] { product<<<static_cast<unsigned>((rows + 7) / 8), dim3(small, 8)>>>(to, from, matrix, rows); });
    result = to, results = rows * small;
  } else if (what == "reduction") {
    float *sums = filled(blocks_of(words)), *from = filled(words, 0.001F);
    measure(what, words * 4, 0, [&] { reduction<<<blocks_of(words), threads>>>(sums, from, words); });
    result = sums, results = blocks_of(words);
  } else if (what == "transpose") {
    size_t side = tile;
    while ((side + tile) * (side + tile) <= words / 2) side += tile;
    float *to = filled(side * side), *from = filled(side * side);
    const dim3 block(tile, 8), grid(static_cast<unsigned>(side / tile), static_cast<unsigned>(side / tile));
    measure(what, side * side * 4, side * side * 4, [&] { transpose<<<grid, block>>>(to, from, side); });
    result = to, results = side * side;
  } else {
    return std::printf("there is no kernel %s\n", what.c_str()), 2;
  }
  std::printf("%-10s digest %016llx\n", what.c_str(), digest_of(result, results));
  return 0;
}
