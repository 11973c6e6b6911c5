// Programs for one GPU, as in CUDA courses and collections of samples: vector addition, matrix product, n-body, Monte
// Carlo and heat equation. Each program prints numbers that depend on all of its results.
//   samples [NAME|all [SCALE]]
// With a scale, the arrays are larger, there are more steps, and each program runs three times; the milliseconds of its
// kernels in the last run are printed on standard error.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tests/interpose/programs/check.h"

__global__ void add(const float* a, const float* b, float* c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

__global__ void multiply(const float* a, const float* b, float* c, int n) {
  __shared__ float ta[16][16], tb[16][16];
  const int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < n; k += 16) {
    ta[threadIdx.y][threadIdx.x] = a[row * n + k + threadIdx.x];
    tb[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + column];
    __syncthreads();
    for (int j = 0; j < 16; ++j) sum += ta[threadIdx.y][j] * tb[j][threadIdx.x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}

__constant__ float softening;

__global__ void attract(const float4* bodies, float4* velocities, int n, float dt) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float4 me = bodies[i];
  float x = 0, y = 0, z = 0;
  for (int j = 0; j < n; ++j) {
    const float dx = bodies[j].x - me.x, dy = bodies[j].y - me.y, dz = bodies[j].z - me.z;
    const float r = dx * dx + dy * dy + dz * dz + softening, inverse = rsqrtf(r), f = bodies[j].w * inverse / r;
    x += f * dx, y += f * dy, z += f * dz;
  }
  velocities[i].x += dt * x, velocities[i].y += dt * y, velocities[i].z += dt * z;
}

__global__ void drift(float4* bodies, const float4* velocities, int n, float dt) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  bodies[i].x += dt * velocities[i].x, bodies[i].y += dt * velocities[i].y, bodies[i].z += dt * velocities[i].z;
}

__device__ unsigned long long hits;

__global__ void throw_darts(int each) {
  unsigned state = blockIdx.x * blockDim.x + threadIdx.x + 1;
  const auto next = [&state] { return (state = state * 1664525u + 1013904223u) * 2.3283064e-10f; };
  unsigned mine = 0;
  for (int k = 0; k < each; ++k) {
    const float x = next(), y = next();
    mine += x * x + y * y <= 1;
  }
  atomicAdd(&hits, (unsigned long long)mine);
}

__global__ void diffuse(const float* now, float* then, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, i = y * width + x;
  if (x < 1 || y < 1 || x >= width - 1 || y >= height - 1) return;
  then[i] = now[i] + 0.2f * (now[i - 1] + now[i + 1] + now[i - width] + now[i + width] - 4 * now[i]);
}

// Returns a number that depends on every bit of the values.
template <class T>
unsigned long long digest_of(const std::vector<T>& values) {
  unsigned long long sum = 0;
  for (const T& v : values) {
    unsigned bits[sizeof(T) / 4];
    memcpy(bits, &v, sizeof v);
    for (const unsigned b : bits) sum = sum * 6364136223846793005ULL + b + 1;
  }
  return sum;
}

template <class T>
T* on_device(const std::vector<T>& values) {
  T* made = nullptr;
  CHECK(cudaMalloc(&made, values.size() * sizeof(T)));
  CHECK(cudaMemcpy(made, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  return made;
}

template <class T>
std::vector<T> on_host(const T* values, size_t n) {
  std::vector<T> made(n);
  CHECK(cudaMemcpy(made.data(), values, n * sizeof(T), cudaMemcpyDeviceToHost));
  return made;
}

int scale = 1;
double kernel_ms = 0;

template <class Launches>
void timed(Launches launches) {
  CHECK(cudaDeviceSynchronize());
  const auto begin = std::chrono::steady_clock::now();
  launches();
  CHECK(cudaDeviceSynchronize());
  kernel_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

std::vector<float> sequence(size_t n) {
  std::vector<float> made(n);
  for (size_t i = 0; i < n; ++i) made[i] = (float)(i * 2654435761u % 1000) / 1000;
  return made;
}

void vector_addition() {
  const int n = 2500000 * scale;
  float *a = on_device(sequence(n)), *b = on_device(sequence(n)), *c = on_device(std::vector<float>(n));
  timed([&] { add<<<(n + 255) / 256, 256>>>(a, b, c, n); });
  printf("vector addition %llx\n", digest_of(on_host(c, n)));
  for (float* each : {a, b, c}) CHECK(cudaFree(each));
}

void matrix_product() {
  const int n = 256 * scale;
  float *a = on_device(sequence(n * n)), *b = on_device(sequence(n * n)), *c = on_device(std::vector<float>(n * n));
  timed([&] { multiply<<<dim3(n / 16, n / 16), dim3(16, 16)>>>(a, b, c, n); });
  printf("matrix product %llx\n", digest_of(on_host(c, n * n)));
}

void n_body() {
  const int n = 1024 * scale;
  std::vector<float4> start(n);
  const auto values = sequence(4 * n);
  memcpy(start.data(), values.data(), n * sizeof(float4));
  float4 *bodies = on_device(start), *velocities = on_device(std::vector<float4>(n));
  const float e = 0.01f;
  CHECK(cudaMemcpyToSymbol(softening, &e, sizeof e));
  timed([&] {
    for (int step = 0; step < (scale > 1 ? 20 : 5); ++step) {
      attract<<<n / 64, 64>>>(bodies, velocities, n, 0.001f);
      drift<<<n / 64, 64>>>(bodies, velocities, n, 0.001f);
    }
  });
  printf("n-body %llx\n", digest_of(on_host(bodies, n)));
}

void monte_carlo() {
  timed([&] { throw_darts<<<64 * scale, 64>>>(500 * scale); });
  unsigned long long all = 0;
  CHECK(cudaMemcpyFromSymbol(&all, hits, sizeof all));
  printf("Monte Carlo %llu\n", all);
}

void heat_equation() {
  const int width = 1024 * scale, height = 1536 * scale;
  const size_t all = (size_t)width * height;
  float *now = on_device(sequence(all)), *then = on_device(sequence(all));
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  timed([&] {
    for (int step = 0; step < (scale > 1 ? 100 : 6); ++step) {
      diffuse<<<dim3(width / 32, height / 8), dim3(32, 8), 0, stream>>>(now, then, width, height);
      std::swap(now, then);
    }
    CHECK(cudaStreamSynchronize(stream));
  });
  printf("heat equation %llx\n", digest_of(on_host(now, all)));
  for (float* each : {now, then}) CHECK(cudaFree(each));
}

int main(int argc, char** argv) {
  const struct {
    const char* name;
    void (*run)();
  } all[] = {{"vector", vector_addition}, {"matrix", matrix_product}, {"bodies", n_body}, {"darts", monte_carlo}, {"heat", heat_equation}};
  int devices = 0;
  CHECK(cudaGetDeviceCount(&devices));
  printf("%d devices\n", devices);
  if (argc > 2) scale = atoi(argv[2]);
  for (const auto& each : all) {
    if (argc > 1 && strcmp(argv[1], each.name) != 0 && strcmp(argv[1], "all") != 0) continue;
    for (int run = 0; run < (argc > 2 ? 3 : 1); ++run) each.run();
    if (argc > 2) fprintf(stderr, "%.4f %s, scale %d\n", kernel_ms, each.name, scale);
  }
}
