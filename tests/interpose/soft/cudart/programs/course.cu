// More programs for one GPU, as in CUDA courses: a reduction that the last block finishes, transposes, a histogram,
// prefix sums, a graph search, a convolution, the game of life, a sort, an iteration until nothing changes, and memory
// of pools. Each program prints numbers that depend on all of its results, but not on the order of blocks.
//   course [NAME]

#include <cstring>
#include <numeric>
#include <vector>

#include "tests/interpose/programs/check.h"

namespace {

constexpr int threads = 256;

int blocks_for(int n) { return (n + threads - 1) / threads; }

template <class T>
T* on_device(const std::vector<T>& values) {
  T* made = nullptr;
  CHECK(cudaMalloc(&made, values.size() * sizeof(T)));
  CHECK(cudaMemcpy(made, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  return made;
}

template <class T>
void print(const char* name, const T* values, size_t n) {
  std::vector<T> made(n + 8 / sizeof(T));
  CHECK(cudaMemcpy(made.data(), values, n * sizeof(T), cudaMemcpyDeviceToHost));
  printf("%s %llx\n", name, (unsigned long long)digest(made.data(), made.size() * sizeof(T)));
}

std::vector<int> random_numbers(int n, int below) {
  numbers random(7);
  std::vector<int> made(n);
  for (int& x : made) x = (int)random.below(below);
  return made;
}

}  // namespace

__device__ unsigned finished_blocks;

__global__ void add_up(const int* values, int n, int* partial, int* total) {
  __shared__ int sums[threads];
  __shared__ bool is_last;
  int mine = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) mine += values[i];
  sums[threadIdx.x] = mine;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = sums[0];
    __threadfence();
    is_last = atomicInc(&finished_blocks, gridDim.x) == gridDim.x - 1;
  }
  __syncthreads();
  if (!is_last) return;
  if (threadIdx.x == 0) {
    int all = 0;
    for (int b = 0; b < gridDim.x; ++b) all += ((volatile int*)partial)[b];
    *total = all;
    finished_blocks = 0;
  }
}

void reduction() {
  const int n = 1500000, blocks = 128;
  int* values = on_device(random_numbers(n, 1000));
  int *partial, *total;
  CHECK(cudaMalloc(&partial, blocks * sizeof(int)));
  CHECK(cudaMalloc(&total, sizeof(int)));
  for (int round = 0; round < 3; ++round) {
    add_up<<<blocks, threads>>>(values, n, partial, total);
    int sum = 0;
    CHECK(cudaMemcpy(&sum, total, sizeof sum, cudaMemcpyDeviceToHost));
    printf("reduction %d\n", sum);
  }
}

__global__ void transpose(const int* in, int* out, int width, int height) {
  __shared__ int tile[32][33];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int k = 0; k < 32; k += blockDim.y)
    if (x < width && y + k < height) tile[threadIdx.y + k][threadIdx.x] = in[(y + k) * width + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  for (int k = 0; k < 32; k += blockDim.y)
    if (x < height && y + k < width) out[(y + k) * height + x] = tile[threadIdx.x][threadIdx.y + k];
}

void transposes() {
  const int width = 1500, height = 1100;
  int *in = on_device(random_numbers(width * height, 1 << 30)), *out = on_device(std::vector<int>(width * height));
  transpose<<<dim3((width + 31) / 32, (height + 31) / 32), dim3(32, 8)>>>(in, out, width, height);
  CHECK(cudaGetLastError());
  print("transpose", out, width * height);
}

__global__ void count_values(const unsigned char* bytes, int n, unsigned* counts) {
  __shared__ unsigned mine[256];
  mine[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&mine[bytes[i]], 1u);
  __syncthreads();
  if (mine[threadIdx.x] != 0) atomicAdd(&counts[threadIdx.x], mine[threadIdx.x]);
}

void histogram() {
  const int n = 4 << 20;
  const std::vector<int> values = random_numbers(n / 4, 1 << 30);
  int* const words = on_device(values);
  unsigned* counts;
  CHECK(cudaMalloc(&counts, 256 * sizeof *counts));
  CHECK(cudaMemset(counts, 0, 256 * sizeof *counts));
  count_values<<<96, 256>>>((const unsigned char*)words, n, counts);
  print("histogram", counts, 256);
}

__global__ void scan_blocks(const int* in, int* out, int* sums, int n) {
  __shared__ int values[threads];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  values[threadIdx.x] = i < n ? in[i] : 0;
  for (int distance = 1; distance < blockDim.x; distance *= 2) {
    __syncthreads();
    const int left = threadIdx.x >= distance ? values[threadIdx.x - distance] : 0;
    __syncthreads();
    values[threadIdx.x] += left;
  }
  if (i < n) out[i] = values[threadIdx.x];
  if (sums != nullptr && threadIdx.x == blockDim.x - 1) sums[blockIdx.x] = values[threadIdx.x];
}

__global__ void add_sums(int* out, const int* sums, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (blockIdx.x > 0 && i < n) out[i] += sums[blockIdx.x - 1];
}

void scan(const int* in, int* out, int n) {
  const int blocks = blocks_for(n);
  if (blocks == 1) {
    scan_blocks<<<1, threads>>>(in, out, nullptr, n);
    return;
  }
  int* sums;
  CHECK(cudaMalloc(&sums, blocks * sizeof(int)));
  scan_blocks<<<blocks, threads>>>(in, out, sums, n);
  scan(sums, sums, blocks);
  add_sums<<<blocks, threads>>>(out, sums, n);
  CHECK(cudaFree(sums));
}

void prefix_sums() {
  const int n = 1100003;
  int *in = on_device(random_numbers(n, 100)), *out = on_device(std::vector<int>(n));
  scan(in, out, n);
  print("prefix sums", out, n);
}

__global__ void visit(const int* first, const int* edges, int* level, int now, int nodes, int* found) {
  const int n = blockIdx.x * blockDim.x + threadIdx.x;
  if (n >= nodes || level[n] != now) return;
  for (int e = first[n]; e < first[n + 1]; ++e)
    if (atomicCAS(&level[edges[e]], -1, now + 1) == -1) *found = 1;
}

void search() {
  const int nodes = 200000, degree = 4;
  std::vector<int> first(nodes + 1), start(nodes, -1);
  for (int n = 0; n <= nodes; ++n) first[n] = n * degree;
  start[0] = 0;
  int *begin = on_device(first), *edges = on_device(random_numbers(nodes * degree, nodes)), *level = on_device(start);
  int* found;
  CHECK(cudaMalloc(&found, sizeof *found));
  int depth = 0;
  for (int more = 1; more != 0; ++depth) {
    CHECK(cudaMemset(found, 0, sizeof *found));
    visit<<<blocks_for(nodes), threads>>>(begin, edges, level, depth, nodes, found);
    CHECK(cudaMemcpy(&more, found, sizeof more, cudaMemcpyDeviceToHost));
  }
  printf("%d levels\n", depth);
  print("search", level, nodes);
}

__constant__ float mask[25];

__global__ void filter(const float* in, float* out, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  float sum = 0;
  for (int dy = -2; dy <= 2; ++dy)
    for (int dx = -2; dx <= 2; ++dx) {
      const int px = min(max(x + dx, 0), width - 1), py = min(max(y + dy, 0), height - 1);
      sum += mask[(dy + 2) * 5 + dx + 2] * in[py * width + px];
    }
  out[y * width + x] = sum;
}

void convolution() {
  const int width = 1300, height = 900;
  std::vector<float> image(width * height), weights(25);
  std::iota(image.begin(), image.end(), 0.0f);
  float *in = on_device(image), *out = on_device(image);
  for (int pass = 0; pass < 3; ++pass) {
    for (int k = 0; k < 25; ++k) weights[k] = (float)((k * 7 + pass) % 11) / 64;
    CHECK(cudaMemcpyToSymbol(mask, weights.data(), sizeof mask));
    filter<<<dim3((width + 15) / 16, (height + 15) / 16), dim3(16, 16)>>>(in, out, width, height);
    std::swap(in, out);
  }
  print("convolution", in, width * height);
}

__global__ void live(const unsigned char* now, unsigned char* next, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
  if (x >= width) return;
  int around = 0;
  for (int dy = height - 1; dy <= height + 1; ++dy)
    for (int dx = width - 1; dx <= width + 1; ++dx) around += now[(y + dy) % height * width + (x + dx) % width];
  const unsigned char me = now[y * width + x];
  next[y * width + x] = around - me == 3 || (me != 0 && around - me == 2);
}

void life() {
  const int width = 2048, height = 2048;
  std::vector<unsigned char> start(width * height);
  numbers random(3);
  for (auto& cell : start) cell = random.below(3) == 0;
  unsigned char *now = on_device(start), *next = on_device(start);
  for (int generation = 0; generation < 4; ++generation) {
    live<<<dim3(width / threads, height), threads>>>(now, next, width, height);
    std::swap(now, next);
  }
  print("life", now, width * height);
}

__global__ void compare_and_swap(int* values, int distance, int size) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, other = i ^ distance;
  if (other <= i) return;
  const int a = values[i], b = values[other];
  if ((a > b) == ((i & size) == 0)) {
    values[i] = b;
    values[other] = a;
  }
}

void bitonic_sort() {
  const int n = 1 << 16;
  int* const values = on_device(random_numbers(n, 1 << 30));
  for (int size = 2; size <= n; size *= 2)
    for (int distance = size / 2; distance > 0; distance /= 2)
      compare_and_swap<<<n / threads, threads>>>(values, distance, size);
  print("sort", values, n);
}

__global__ void relax(const int* in, int* out, int n, int* changed) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int left = i > 0 ? in[i - 1] : in[i], right = i < n - 1 ? in[i + 1] : in[i];
  const int least = min(in[i], min(left, right));
  out[i] = least;
  if (least != in[i]) atomicExch(changed, 1);
}

// Uses memory of pools, streams and events.
void spread_of_minima() {
  const int n = 2200000;
  std::vector<int> start = random_numbers(n, 1 << 20);
  for (int& x : start) x += x % 5 == 0 ? 0 : 1 << 21;
  cudaStream_t stream;
  cudaEvent_t done;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaEventCreate(&done));
  int *in, *out, *changed, rounds = 0, again = 1;
  CHECK(cudaMallocAsync(&in, n * sizeof(int), stream));
  CHECK(cudaMallocAsync(&out, n * sizeof(int), stream));
  CHECK(cudaMallocAsync(&changed, sizeof(int), stream));
  CHECK(cudaMemcpyAsync(in, start.data(), n * sizeof(int), cudaMemcpyHostToDevice, stream));
  for (; again != 0 && rounds < 6; ++rounds) {
    CHECK(cudaMemsetAsync(changed, 0, sizeof(int), stream));
    relax<<<blocks_for(n), threads, 0, stream>>>(in, out, n, changed);
    CHECK(cudaMemcpyAsync(&again, changed, sizeof again, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaEventRecord(done, stream));
    CHECK(cudaEventSynchronize(done));
    std::swap(in, out);
  }
  printf("%d rounds\n", rounds);
  print("minima", in, n);
  for (int* each : {in, out, changed}) CHECK(cudaFreeAsync(each, stream));
  CHECK(cudaStreamSynchronize(stream));
}

__global__ void mark(unsigned char* bytes, size_t n, size_t distance) {
  const size_t at = (blockIdx.x * blockDim.x + threadIdx.x) * distance;
  if (at < n) bytes[at] = 1 + bytes[at];
}

// Allocates more memory from a pool than one of several small devices has.
void large_pool() {
  const size_t n = size_t(96) << 20, distance = 4096;
  unsigned char* bytes = nullptr;
  CHECK(cudaMallocAsync(&bytes, n, nullptr));
  CHECK(cudaMemsetAsync(bytes, 1, n, nullptr));
  mark<<<blocks_for((int)(n / distance)), threads>>>(bytes, n, distance);
  print("pool", bytes, n);
  CHECK(cudaFreeAsync(bytes, nullptr));
  CHECK(cudaDeviceSynchronize());
}

int main(int argc, char** argv) {
  const struct {
    const char* name;
    void (*run)();
  } all[] = {{"reduction", reduction}, {"transpose", transposes}, {"histogram", histogram},
             {"scan", prefix_sums},    {"search", search},        {"convolution", convolution},
             {"life", life},           {"sort", bitonic_sort},    {"minima", spread_of_minima},
             {"pool", large_pool}};
  for (const auto& each : all)
    if (argc < 2 || strcmp(argv[1], each.name) == 0) each.run();
}
