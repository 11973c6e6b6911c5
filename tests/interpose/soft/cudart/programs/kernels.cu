// Runs kernels as users write them (from tests/ptx/programs) with data, and checks the results:
//
//   kernels <name> [seed]
//
// prints "<name>: right". On an error, prints the error and the seed, and returns 1.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "tests/interpose/programs/check.h"
#include "tests/ptx/programs/bitonic.cu"
#include "tests/ptx/programs/calls.cu"
#include "tests/ptx/programs/groups.cu"
#include "tests/ptx/programs/histogram.cu"
#include "tests/ptx/programs/matmul.cu"
#include "tests/ptx/programs/scan.cu"
#include "tests/ptx/programs/stencil.cu"

static unsigned long seed;

// Device memory with the content of a vector.
template <class T>
class on_device {
 public:
  explicit on_device(const std::vector<T>& host) : size_(host.size()) {
    CHECK(cudaMalloc(&data_, size_ * sizeof(T)));
    CHECK(cudaMemcpy(data_, host.data(), size_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  on_device(const on_device&) = delete;
  ~on_device() { cudaFree(data_); }
  operator T*() { return data_; }
  std::vector<T> host() {
    CHECK(cudaGetLastError());
    std::vector<T> result(size_);
    CHECK(cudaMemcpy(result.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost));
    return result;
  }

 private:
  T* data_ = nullptr;
  std::size_t size_;
};

template <class T>
static std::vector<T> random_numbers(std::size_t n, int least, int most) {
  std::mt19937_64 engine(seed);
  std::uniform_int_distribution<int> distribution(least, most);
  std::vector<T> result(n);
  for (T& value : result) value = static_cast<T>(distribution(engine));
  return result;
}

template <class T>
static bool same(const std::vector<T>& got, const std::vector<T>& wanted) {
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (std::memcmp(&got[i], &wanted[i], sizeof(T)) != 0) {
      std::printf("at %zu: %g, not %g\n", i, double(got[i]), double(wanted[i]));
      return false;
    }
  return got.size() == wanted.size();
}

static bool run_matmul() {
  bool good = true;
  for (const int n : {1, 16, 75}) {
    const auto a = random_numbers<float>(n * n, -1000, 1000);
    auto b = a;
    std::reverse(b.begin(), b.end());
    for (float& x : b) x /= 7;
    on_device<float> x(a), y(b), z(std::vector<float>(n * n, NAN));
    matmul<<<dim3((n + tile - 1) / tile, (n + tile - 1) / tile), dim3(tile, tile)>>>(x, y, z, n);
    std::vector<float> wanted(n * n);
    for (int row = 0; row < n; ++row)
      for (int column = 0; column < n; ++column) {
        float sum = 0;
        for (int k = 0; k < n; ++k) sum = std::fma(a[row * n + k], b[k * n + column], sum);
        wanted[row * n + column] = sum;
      }
    good = same(z.host(), wanted) && good;
  }
  return good;
}

static bool run_stencil() {
  constexpr int nx = 41, ny = 29, nz = 23, n = nx * ny * nz;
  const float c[5] = {-205.0f / 72, 8.0f / 5, -1.0f / 5, 8.0f / 315, -1.0f / 560};
  const auto now = random_numbers<float>(n, -100, 100);
  const std::vector<float> before(n, 0.5f), velocity(n, 0.25f);
  on_device<float> a(now), b(before), v(velocity);
  CHECK(cudaMemcpyToSymbol(coefficients, c, sizeof c));
  stencil<<<dim3((nx - 8 + 15) / 16, (ny - 8 + 7) / 8), dim3(16, 8)>>>(a, b, v, nx, ny, nz);
  const std::vector<float> got = b.host();
  for (int z = 0; z < nz; ++z)
    for (int y = 0; y < ny; ++y)
      for (int x = 0; x < nx; ++x) {
        const int i = (z * ny + y) * nx + x;
        const bool inside = x >= 4 && x < nx - 4 && y >= 4 && y < ny - 4 && z >= 4 && z < nz - 4;
        double wanted = before[i];
        if (inside) {
          double sum = 3.0 * c[0] * now[i];
          for (int r = 1; r <= 4; ++r)
            for (const int step : {1, nx, nx * ny}) sum += double(c[r]) * (double(now[i - r * step]) + now[i + r * step]);
          wanted = 2.0 * now[i] - before[i] + velocity[i] * sum;
        }
        if (!(std::abs(got[i] - wanted) <= 1e-3)) {
          std::printf("at %d %d %d: %g, not %g\n", x, y, z, got[i], wanted);
          return false;
        }
      }
  return true;
}

static bool run_scan() {
  constexpr unsigned n = 12345, block = 256;
  const auto in = random_numbers<int>(n, -1000, 1000);
  on_device<int> from(in), to(std::vector<int>(n, -1));
  block_scan<<<(n + block - 1) / block, block>>>(from, to, n);
  std::vector<int> wanted(n);
  for (unsigned first = 0; first < n; first += block)
    std::partial_sum(in.begin() + first, in.begin() + std::min(n, first + block), wanted.begin() + first);
  return same(to.host(), wanted);
}

static bool run_histogram() {
  constexpr unsigned n = 100003;
  const auto data = random_numbers<unsigned char>(n, 0, 255);
  on_device<unsigned char> from(data);
  on_device<unsigned> bins(std::vector<unsigned>(256, 3));
  histogram<<<13, 192>>>(from, bins, n);
  std::vector<unsigned> wanted(256, 3);
  for (const unsigned char value : data) ++wanted[value];
  return same(bins.host(), wanted);
}

static bool run_bitonic() {
  constexpr int block = 512, blocks = 5;
  const auto in = random_numbers<int>(block * blocks, -100000, 100000);
  on_device<int> data(in);
  bitonic<<<blocks, block, block * sizeof(int)>>>(data);
  auto wanted = in;
  for (int b = 0; b < blocks; ++b) std::sort(wanted.begin() + b * block, wanted.begin() + (b + 1) * block);
  return same(data.host(), wanted);
}

static bool run_groups() {
  constexpr unsigned n = 50001;
  const auto in = random_numbers<float>(n, 0, 9);  // whole numbers, so the order of the summation does not matter
  on_device<float> data(in), sum(std::vector<float>(1, 0));
  group_sum<<<7, 256>>>(data, sum, n);
  if (!same(sum.host(), std::vector<float>(1, std::accumulate(in.begin(), in.end(), 0.0f)))) return false;

  constexpr unsigned count = 700;
  std::vector<int> wanted = random_numbers<int>(count, -9, 9);
  on_device<int> cells(wanted);
  int *p = cells, rounds = 6;
  unsigned size = count;
  void* arguments[] = {&p, &size, &rounds};
  CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(grid_stages), dim3(6), dim3(128), arguments, 0, nullptr));
  for (int r = 0; r < rounds; ++r)
    for (unsigned i = count - 1; i > 0; --i) wanted[i] += wanted[i - 1];
  return same(cells.host(), wanted);
}

static bool run_recursion() {
  on_device<unsigned> out(std::vector<unsigned>(64, 0));
  recursion<<<1, 64>>>(out);
  std::vector<unsigned> wanted(64);
  for (unsigned i = 0; i < 64; ++i) {
    unsigned a = 0, b = 1;
    for (unsigned k = 0; k < i % 20; ++k) b = std::exchange(a, b) + b;
    wanted[i] = a;
  }
  return same(out.host(), wanted);
}

static bool run_indirect() {
  bool good = true;
  for (const int which : {0, 1}) {
    on_device<int> out(std::vector<int>(64, 0));
    indirect<<<1, 64>>>(out, which);
    std::vector<int> wanted(64);
    for (int i = 0; i < 64; ++i) wanted[i] = (i % 2 != 0 ? i * i : -7) + ((i + which) % 2 == 0 ? i + 5 : i * 5);
    good = same(out.host(), wanted) && good;
  }
  return good;
}

// The kernel prints lines, and the host then prints the expected lines; the caller compares them.
static bool run_printing() {
  on_device<char> name(std::vector<char>{'h', 'p', 'e', 0});
  printing<<<1, 64>>>(name, 0.125);
  CHECK(cudaDeviceSynchronize());
  for (int t = 0; t < 64; t += 16)
    std::printf("wanted: hpe %d %d %5.2f %c %llx\n", -t, t, 0.125 + t, 'a' + t / 16, 0x123456789abcULL + t);
  return true;
}

static bool run_heap() {
  constexpr int n = 1000;
  CHECK(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 16 << 20));
  on_device<int*> keep(std::vector<int*>(128));
  heap<<<1, 128>>>(keep, n);
  const std::vector<int*> got = keep.host();
  for (long t = 0; t < 128; ++t)
    if (reinterpret_cast<long>(got[t]) != t * n * (n - 1) / 2) {
      std::printf("thread %ld: %ld\n", t, reinterpret_cast<long>(got[t]));
      return false;
    }
  return true;
}

int main(int argc, char** argv) {
  const std::map<std::string, bool (*)()> all{
      {"bitonic", run_bitonic},   {"groups", run_groups},     {"heap", run_heap},           {"histogram", run_histogram},
      {"indirect", run_indirect}, {"matmul", run_matmul},     {"printing", run_printing},   {"recursion", run_recursion},
      {"scan", run_scan},         {"stencil", run_stencil}};
  const auto found = all.find(argc > 1 ? argv[1] : "");
  if (found == all.end()) return 2;
  seed = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : std::random_device{}();
  const bool good = found->second();
  std::printf("%s: %s (seed %lu)\n", argv[1], good ? "right" : "WRONG", seed);
  return good ? 0 : 1;
}
