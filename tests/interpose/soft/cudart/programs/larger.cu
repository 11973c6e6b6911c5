// A program for one GPU whose launches use more memory than hpe has on the device (hpe run --oversubscribe): a triad, a
// stencil, a matrix product, reductions and a transpose, launches in a loop, in a graph and on two streams, and kernels
// that cannot run in parts. Each part prints numbers that depend on all of its results, but not on the order of blocks.
//   larger NAME

#include <cstring>
#include <utility>
#include <vector>

#include "tests/interpose/programs/check.h"

namespace {

constexpr int threads = 256;
constexpr size_t mebibyte = size_t{1} << 20;

template <class T>
T* filled(size_t n, unsigned seed) {
  std::vector<T> values(n);
  for (size_t i = 0; i < n; ++i) values[i] = static_cast<T>((i * 2654435761u + seed) % 1000);
  T* made = nullptr;
  CHECK(cudaMalloc(&made, n * sizeof(T)));
  CHECK(cudaMemcpy(made, values.data(), n * sizeof(T), cudaMemcpyHostToDevice));
  return made;
}

template <class T>
void print(const char* name, const T* values, size_t n) {
  std::vector<T> made(n + 8 / sizeof(T));
  CHECK(cudaMemcpy(made.data(), values, n * sizeof(T), cudaMemcpyDeviceToHost));
  printf("%s %llx\n", name, (unsigned long long)digest(made.data(), made.size() * sizeof(T)));
}

unsigned blocks_for(size_t n) { return static_cast<unsigned>((n + threads - 1) / threads); }

}  // namespace

__global__ void add_scaled(float* a, const float* b, const float* c, float factor, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) a[i] = b[i] + factor * c[i];
}

// Makes one time step of heat conduction: each cell is computed from its four neighbours.
__global__ void spread_heat(float* to, const float* from, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < 1 || y < 1 || x >= width - 1 || y >= height - 1) return;
  const int i = y * width + x;
  to[i] = from[i] + 0.1f * (from[i - 1] + from[i + 1] + from[i - width] + from[i + width] - 4 * from[i]);
}

__global__ void multiply(float* c, const float* a, const float* b, int columns, int depth) {
  const int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < depth; ++k) sum += a[row * depth + k] * b[k * columns + column];
  c[row * columns + column] = sum;
}

// Computes the sum of each block and the sum of all blocks.
__global__ void add_up(const unsigned* values, unsigned* partial, unsigned long long* total) {
  __shared__ unsigned sums[threads];
  sums[threadIdx.x] = values[blockIdx.x * blockDim.x + threadIdx.x];
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x != 0) return;
  partial[blockIdx.x] = sums[0];
  atomicAdd(total, static_cast<unsigned long long>(sums[0]));
}

__global__ void transpose(float* out, const float* in, int n) {
  __shared__ float tile[16][17];
  int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  tile[threadIdx.y][threadIdx.x] = in[y * n + x];
  __syncthreads();
  x = blockIdx.y * 16 + threadIdx.x;
  y = blockIdx.x * 16 + threadIdx.y;
  out[y * n + x] = tile[threadIdx.x][threadIdx.y];
}

// A grid-stride loop.
__global__ void add_in_steps(float* to, const float* from, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) to[i] += from[i];
}

// A histogram of both arrays.
__global__ void count_values(unsigned* counts, const float* a, const float* b, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&counts[static_cast<unsigned>(a[i] + b[i]) % 1000], 1u);
}

// Many threads add to the same elements of both arrays.
__global__ void add_atomically(float* a, float* b, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    if (i % 64 == 0) {
      atomicAdd(&a[i / 4096], 1.0f);
      atomicAdd(&b[n - 1 - i / 4096], 1.0f);
    }
}

// Reads 16 rows ahead, at the end past the end of the array, where it ignores the value.
__global__ void add_ahead(float* to, const float* from, int rows, int columns) {
  __shared__ float ahead[16][16];
  const int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  ahead[threadIdx.y][threadIdx.x] = from[(y + 16) * columns + x];
  __syncthreads();
  if (y + 16 >= rows) ahead[threadIdx.y][threadIdx.x] = 1;
  to[y * columns + x] += ahead[threadIdx.y][threadIdx.x];
}

struct node {
  float* values;
};
__global__ void follow(node* of, const float* from, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) of->values[i] = from[i];
}

__device__ unsigned long long count_of_all;
__constant__ float factors[2];
__global__ void count(float* to, const float* from, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  to[i] = factors[0] * from[i] + factors[1];
  if (threadIdx.x == 0) atomicAdd(&count_of_all, 1ull);
}

namespace {

constexpr int triad_size = 8 << 20;  // elements in each of three arrays of 32 MiB

void triad() {
  float* a = filled<float>(triad_size, 1);
  add_scaled<<<blocks_for(triad_size), threads>>>(a, filled<float>(triad_size, 2), filled<float>(triad_size, 3), 3,
                                                  triad_size);
  CHECK(cudaGetLastError());
  print("triad", a, triad_size);
}

void stencil() {
  constexpr int width = 3000, height = 4000;  // two arrays of 46 MiB
  float *from = filled<float>(size_t{width} * height, 1), *to = filled<float>(size_t{width} * height, 2);
  const dim3 block(32, 8), grid((width + 31) / 32, (height + 7) / 8);
  for (int step = 0; step < 3; ++step) {
    spread_heat<<<grid, block>>>(step % 2 == 0 ? to : from, step % 2 == 0 ? from : to, width, height);
    CHECK(cudaGetLastError());
  }
  print("stencil", to, size_t{width} * height);
  print("stencil from", from, size_t{width} * height);
}

void product() {
  constexpr int rows = 1 << 18, columns = 64, depth = 32;  // a matrix of 32 MiB times a matrix of 8 KiB gives 64 MiB
  float *a = filled<float>(size_t{rows} * depth, 1), *b = filled<float>(columns * depth, 2);
  float* c = filled<float>(size_t{rows} * columns, 3);
  multiply<<<dim3(columns / 16, rows / 16), dim3(16, 16)>>>(c, a, b, columns, depth);
  CHECK(cudaGetLastError());
  print("product", c, size_t{rows} * columns);
}

void reduction() {
  constexpr size_t n = 24 << 20;  // 96 MiB
  unsigned *values = filled<unsigned>(n, 1), *partial = filled<unsigned>(n / threads, 2);
  auto* total = filled<unsigned long long>(1, 0);
  add_up<<<n / threads, threads>>>(values, partial, total);
  CHECK(cudaGetLastError());
  print("partial", partial, n / threads);
  print("total", total, 1);
}

void transposed() {
  constexpr int n = 3584;  // two arrays of 49 MiB
  float *out = filled<float>(size_t{n} * n, 1), *in = filled<float>(size_t{n} * n, 2);
  transpose<<<dim3(n / 16, n / 16), dim3(16, 16)>>>(out, in, n);
  CHECK(cudaGetLastError());
  print("transpose", out, size_t{n} * n);
}

// The host reads a number that a launch has computed, and chooses the next launch by this number.
void loop() {
  unsigned *values = filled<unsigned>(size_t{24} << 20, 1), *partial = filled<unsigned>((24 << 20) / threads, 2);
  auto* total = filled<unsigned long long>(1, 0);
  unsigned long long sum = 0;
  int launches = 0;
  for (; sum < 30000000000ull; ++launches) {
    add_up<<<(24 << 20) / threads, threads>>>(values, partial, total);
    CHECK(cudaMemcpy(&sum, total, sizeof sum, cudaMemcpyDeviceToHost));
  }
  printf("loop %d %llu\n", launches, sum);
}

// Launches that the program repeats run in parts at first, and then with data in host memory.
void repeated() {
  constexpr int n = 4 << 20;  // three arrays of 16 MiB
  float *a = filled<float>(n, 1), *b = filled<float>(n, 2), *c = filled<float>(n, 3);
  for (int step = 0; step < 22; ++step) {
    add_scaled<<<blocks_for(n), threads>>>(a, b, c, 0.5f, n);
    std::swap(a, c);
  }
  print("repeated a", a, n);
  print("repeated c", c, n);
}

void graph() {
  float *a = filled<float>(triad_size, 1), *b = filled<float>(triad_size, 2), *c = filled<float>(triad_size, 3);
  cudaStream_t stream;
  cudaGraph_t captured;
  cudaGraphExec_t made;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  add_scaled<<<blocks_for(triad_size), threads, 0, stream>>>(a, b, c, 3, triad_size);
  add_scaled<<<blocks_for(triad_size), threads, 0, stream>>>(b, a, c, 2, triad_size);
  CHECK(cudaStreamEndCapture(stream, &captured));
  CHECK(cudaGraphInstantiate(&made, captured, 0));
  for (int n = 0; n < 2; ++n) CHECK(cudaGraphLaunch(made, stream));
  CHECK(cudaStreamSynchronize(stream));
  print("graph a", a, triad_size);
  print("graph b", b, triad_size);
}

// Both streams launch kernels over the same arrays, and wait for each other between the launches.
void streams() {
  float *a = filled<float>(triad_size, 1), *b = filled<float>(triad_size, 2), *c = filled<float>(triad_size, 3);
  cudaStream_t all[2];
  cudaEvent_t done;
  for (cudaStream_t& each : all) CHECK(cudaStreamCreate(&each));
  CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
  for (int n = 0; n < 4; ++n) {
    add_scaled<<<blocks_for(triad_size), threads, 0, all[n % 2]>>>(n % 2 == 0 ? a : b, n % 2 == 0 ? b : a, c, 2,
                                                                   triad_size);
    CHECK(cudaEventRecord(done, all[n % 2]));
    CHECK(cudaStreamWaitEvent(all[(n + 1) % 2], done));
  }
  CHECK(cudaDeviceSynchronize());
  print("streams a", a, triad_size);
  print("streams b", b, triad_size);
}

void variables() {
  const float host[] = {2, 5};
  CHECK(cudaMemcpyToSymbol(factors, host, sizeof host));
  float *to = filled<float>(triad_size, 1), *from = filled<float>(triad_size, 2);
  filled<float>(triad_size, 3);
  count<<<blocks_for(triad_size), threads>>>(to, from, triad_size);
  unsigned long long counted = 0;
  CHECK(cudaMemcpyFromSymbol(&counted, count_of_all, sizeof counted));
  printf("variables %llu\n", counted);
  print("variables", to, triad_size);
}

// The launch uses only a part of each of two arrays.
void ranges() {
  float *a = filled<float>(triad_size, 1), *b = filled<float>(triad_size, 2);
  constexpr int n = 1 << 20;
  add_in_steps<<<16, threads>>>(a + triad_size / 2, b, n);
  CHECK(cudaGetLastError());
  print("ranges", a, triad_size);
}

void past_the_end() {
  constexpr int rows = 4096, columns = 1024;  // two arrays of 16 MiB
  float *to = filled<float>(size_t{rows} * columns, 1), *from = filled<float>(size_t{rows} * columns, 2);
  add_ahead<<<dim3(columns / 16, rows / 16), dim3(16, 16)>>>(to, from, rows, columns);
  const cudaError_t result = cudaDeviceSynchronize();
  printf("past the end: %s\n", cudaGetErrorName(result));
  if (result != cudaSuccess) return;
  std::vector<float> sums(size_t{rows} * columns);
  CHECK(cudaMemcpy(sums.data(), to, sums.size() * sizeof(float), cudaMemcpyDeviceToHost));
  size_t wrong = 0;
  for (size_t i = 0; i < sums.size(); ++i) {
    const size_t next = i + 16 * columns;
    const float ahead = next < sums.size() ? static_cast<float>((next * 2654435761u + 2) % 1000) : 1;
    wrong += sums[i] != static_cast<float>((i * 2654435761u + 1) % 1000) + ahead;
  }
  printf("wrong sums: %zu\n", wrong);
}

// Prints the result of the launch, and the array that it wrote.
void tell(const char* name, const float* values) {
  const cudaError_t result = cudaDeviceSynchronize();
  printf("%s: %s\n", name, cudaGetErrorName(result));
  if (result == cudaSuccess) print(name, values, triad_size);
}

void steps() {
  float *to = filled<float>(triad_size, 1), *from = filled<float>(triad_size, 2);
  add_in_steps<<<16, threads>>>(to, from, triad_size);
  tell("steps", to);
}

void pointers() {
  float *to = filled<float>(triad_size, 1), *from = filled<float>(triad_size, 2);
  node held{to}, *on_device = nullptr;
  CHECK(cudaMalloc(&on_device, sizeof held));
  CHECK(cudaMemcpy(on_device, &held, sizeof held, cudaMemcpyHostToDevice));
  follow<<<blocks_for(triad_size), threads>>>(on_device, from, triad_size);
  tell("pointers", to);
}

// Launches that do not fit alternate with launches, copies and fills that do, and with other allocations.
void mixed() {
  float *to = filled<float>(triad_size, 1), *from = filled<float>(triad_size, 2);
  auto* counts = filled<unsigned>(1000, 0);
  for (int n = 0; n < 3; ++n) {
    add_in_steps<<<16, threads>>>(to, from, triad_size);
    add_in_steps<<<16, threads>>>(from + n * 1000, to, 100000);
    CHECK(cudaMemset(from + triad_size / 2 + n, 0, mebibyte));
    CHECK(cudaMemcpy(to + 12345, from + 54321 * n, 3 * mebibyte, cudaMemcpyDeviceToDevice));
    add_in_steps<<<16, threads>>>(to, from, triad_size);
    count_values<<<16, threads>>>(counts, to, from, triad_size);
    add_atomically<<<64, threads>>>(to, from, triad_size);
    float* other = filled<float>(triad_size / 2, n);
    add_in_steps<<<16, threads>>>(other, other, triad_size / 2);
    print("other", other, triad_size / 2);
    CHECK(cudaFree(other));
  }
  print("mixed to", to, triad_size);
  print("mixed from", from, triad_size);
  print("mixed counts", counts, 1000);
}

// Launches over two pairs of arrays in turn: neither pair fits.
void turns() {
  float *a = filled<float>(triad_size, 1), *b = filled<float>(triad_size, 2);
  float *c = filled<float>(triad_size, 3), *d = filled<float>(triad_size, 4);
  for (int n = 0; n < 3; ++n) {
    add_in_steps<<<16, threads>>>(a, b, triad_size);
    add_in_steps<<<16, threads>>>(c, d, triad_size);
  }
  print("turns a", a, triad_size);
  print("turns c", c, triad_size);
}

}  // namespace

int main(int count, char** words) {
  const struct {
    const char* name;
    void (*run)();
  } parts[] = {{"triad", triad},          {"stencil", stencil}, {"product", product}, {"reduction", reduction},
               {"transpose", transposed}, {"loop", loop},       {"graph", graph},     {"streams", streams},
               {"variables", variables},  {"ranges", ranges},   {"steps", steps},     {"pointers", pointers},
               {"mixed", mixed},          {"turns", turns},     {"repeated", repeated},
               {"past-the-end", past_the_end}};
  for (const auto& part : parts)
    if (count == 2 && std::strcmp(words[1], part.name) == 0) {
      part.run();
      return 0;
    }
  return 2;
}
