// Measures passes over arrays that together are larger than the memory that hpe may use. The program is written for one
// GPU and does not use hpe itself: it makes one cudaMalloc for each array, and one launch for each array and pass.
// Prints rates.
//
//   larger_bench MEBIBYTES             arrays of 64 MiB with this total size (hpe run --oversubscribe)
//   larger_bench MEBIBYTES by-hand     double buffering of the same arrays in pinned host memory, with three buffers
//   larger_bench MEBIBYTES one-array   one array of this size: filled, and copied in both directions
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tests/interpose/programs/check.h"

constexpr size_t mebi = size_t{1} << 20;
constexpr size_t part = 64 * mebi;
constexpr int blocks = 1024, threads = 256;

__global__ void increment(uint4* words, size_t count) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count; i += size_t{gridDim.x} * blockDim.x) {
    uint4 w = words[i];
    words[i] = make_uint4(w.x + 1, w.y + 1, w.z + 1, w.w + 1);
  }
}

// Adds the number of words that differ from `expected` to *wrong.
__global__ void compare(const uint4* words, size_t count, unsigned expected, unsigned long long* wrong) {
  unsigned long long mine = 0;
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count; i += size_t{gridDim.x} * blockDim.x) {
    const uint4 w = words[i];
    mine += (w.x != expected) + (w.y != expected) + (w.z != expected) + (w.w != expected);
  }
  if (mine != 0) atomicAdd(wrong, mine);
}

__global__ void nothing(const uint4*) {}

static double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

static void tell(const char* what, double value, const char* unit) { std::printf("%-48s %10.3f %s\n", what, value, unit); }

constexpr int passes = 3;

// Runs passes, which increment every word; returns the bytes per second in each direction, as the median of all passes.
template <class Pass>
static double rate_of(size_t bytes, const Pass& pass) {
  double best[passes];
  for (double& seconds : best) {
    const double begin = now();
    pass();
    seconds = now() - begin;
  }
  const double median = best[0] + best[1] + best[2] - std::max({best[0], best[1], best[2]}) - std::min({best[0], best[1], best[2]});
  return static_cast<double>(bytes) / median * 1e-9;
}

static int by_hand(size_t count) {
  constexpr int buffers = 3;
  const size_t kept = std::min(count, size_t{32});  // the number of arrays in host memory
  char* host = nullptr;
  CHECK(cudaHostAlloc(&host, kept * part, cudaHostAllocDefault));
  std::memset(host, 0, kept * part);
  uint4* on_device[buffers];
  cudaStream_t streams[buffers];
  for (int b = 0; b < buffers; ++b) {
    CHECK(cudaMalloc(&on_device[b], part));
    CHECK(cudaStreamCreate(&streams[b]));
  }
  const auto pass = [&] {
    for (size_t n = 0; n < count; ++n) {
      const int b = static_cast<int>(n % buffers);
      char* const place = host + n % kept * part;
      CHECK(cudaMemcpyAsync(on_device[b], place, part, cudaMemcpyHostToDevice, streams[b]));
      increment<<<blocks, threads, 0, streams[b]>>>(on_device[b], part / sizeof(uint4));
      CHECK(cudaMemcpyAsync(place, on_device[b], part, cudaMemcpyDeviceToHost, streams[b]));
    }
    CHECK(cudaDeviceSynchronize());
  };
  pass();
  tell("by hand, read and written, GB/s each way", rate_of(count * part, pass), "");
  return 0;
}

static int one_array(size_t bytes) {
  char* array = nullptr;
  char* host = nullptr;
  CHECK(cudaMalloc(&array, bytes));
  CHECK(cudaMallocHost(&host, part));
  CHECK(cudaMemset(array, 3, bytes));
  size_t wrong = 0;
  for (size_t at = 0; at < bytes; at += part) {
    CHECK(cudaMemcpy(host, array + at, part, cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < part; i += 4096) wrong += host[i] != 3;
    std::memset(host, static_cast<int>(at / part), part);
    CHECK(cudaMemcpyAsync(array + at, host, part, cudaMemcpyHostToDevice, nullptr));
    CHECK(cudaStreamSynchronize(nullptr));
  }
  for (size_t at = 0; at < bytes; at += part) {
    CHECK(cudaMemcpy(host, array + at, part, cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < part; i += 4096) wrong += host[i] != static_cast<char>(at / part);
  }
  std::printf("one array of %zu MiB: %zu wrong bytes\n", bytes / mebi, wrong);
  CHECK(cudaFree(array));
  return wrong == 0 ? 0 : 1;
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const size_t count = std::strtoull(argv[1], nullptr, 10) * mebi / part;
  const std::string how = argc > 2 ? argv[2] : "";
  if (how == "by-hand") return by_hand(count);
  if (how == "one-array") return one_array(count * part);

  std::vector<uint4*> arrays(count);
  for (uint4*& a : arrays) {
    CHECK(cudaMalloc(&a, part));
    CHECK(cudaMemset(a, 0, part));
  }
  unsigned expected = 0;
  const auto pass = [&] {
    for (uint4* a : arrays) increment<<<blocks, threads>>>(a, part / sizeof(uint4));
    const cudaError_t failed = cudaGetLastError();
    if (failed != cudaSuccess) {
      std::printf("a launch failed: %s\n", cudaGetErrorName(failed));
      std::exit(3);
    }
    CHECK(cudaDeviceSynchronize());
    ++expected;
  };
  for (int n = 0; n < 3; ++n) pass();  // after these passes, the host's pages are pinned
  tell("read and written, GB/s each way", rate_of(count * part, pass), "");
  unsigned long long* wrong = nullptr;
  CHECK(cudaMalloc(&wrong, sizeof *wrong));
  CHECK(cudaMemset(wrong, 0, sizeof *wrong));
  const auto check = [&] {
    for (const uint4* a : arrays) compare<<<blocks, threads>>>(a, part / sizeof(uint4), expected, wrong);
    CHECK(cudaDeviceSynchronize());
  };
  check();
  tell("only read, GB/s", rate_of(count * part, check), "");
  constexpr int launches = 2000;
  const double begin = now();
  for (int n = 0; n < launches; ++n) nothing<<<1, 32>>>(arrays[0]);
  const double queued = now() - begin;
  CHECK(cudaDeviceSynchronize());
  tell("an empty kernel is queued in, us", queued / launches * 1e6, "");
  tell("and done after, us", (now() - begin) / launches * 1e6, "");
  unsigned long long found = 0;
  CHECK(cudaMemcpy(&found, wrong, sizeof found, cudaMemcpyDeviceToHost));
  std::printf("%zu arrays of 64 MiB: %llu wrong words\n", count, found);
  for (uint4* a : arrays) CHECK(cudaFree(a));
  CHECK(cudaDeviceReset());
  return found == 0 ? 0 : 1;
}
