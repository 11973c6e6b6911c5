// A program that does not need copies: with the argument "touch", CPU code uses device pointers directly, which needs
// hpe; without the argument, the program copies as usual. The output is the same.
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "check.h"

__global__ void step(std::uint64_t* p, std::size_t n, std::uint64_t k) {
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += std::size_t{gridDim.x} * blockDim.x)
    p[i] = p[i] * 6364136223846793005ULL + k;
}

static bool touch = false;

static void put(std::uint64_t* device, const std::vector<std::uint64_t>& host, std::size_t at, std::size_t n) {
  if (touch) {
    std::memcpy(device + at, host.data() + at, n * 8);
  } else {
    CHECK(cudaMemcpy(device + at, host.data() + at, n * 8, cudaMemcpyHostToDevice));
  }
}

static std::uint64_t sum(const std::uint64_t* device, std::size_t at, std::size_t n) {
  if (touch) return digest(device + at, n * 8);
  std::vector<std::uint64_t> host(n);
  CHECK(cudaMemcpy(host.data(), device + at, n * 8, cudaMemcpyDeviceToHost));
  return digest(host.data(), n * 8);
}

static std::string work(int t) {
  constexpr std::size_t n = (std::size_t{12} << 20) / 8 + 333;
  numbers random(t);
  std::vector<std::uint64_t> host(n);
  for (std::size_t i = 0; i < n; ++i) host[i] = i * (t + 1);
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  std::uint64_t *a, *b;
  CHECK(cudaMalloc(&a, n * 8));
  CHECK(cudaMallocAsync(&b, n * 8, stream));
  CHECK(cudaStreamSynchronize(stream));
  put(a, host, 0, n);
  std::uint64_t all = 0;
  for (int round = 0; round < 25; ++round) {
    step<<<64, 256, 0, stream>>>(a, n, round);
    CHECK(cudaMemcpyAsync(b, a, n * 8, cudaMemcpyDeviceToDevice, stream));
    step<<<64, 256, 0, stream>>>(b, n / 2, round);
    if (!touch) CHECK(cudaStreamSynchronize(stream));  // with "touch", hpe waits in its place
    const std::size_t at = random.below(n - 1000), count = 1 + random.below(n - at);
    all = all * 31 + sum(round % 2 == 0 ? a : b, at, count);
    put(b, host, at, count);
    CHECK(cudaMemsetAsync(a + random.below(n - 10), 0x5a, 80, stream));
    step<<<64, 256, 0, stream>>>(b, n, 7);
  }
  if (!touch) CHECK(cudaStreamSynchronize(stream));
  all = all * 31 + sum(a, 0, n);
  all = all * 31 + sum(b, 0, n);
  CHECK(cudaFree(a));
  CHECK(cudaFreeAsync(b, stream));
  CHECK(cudaStreamDestroy(stream));
  char line[80];
  std::snprintf(line, sizeof line, "thread %d: %016llx", t, (unsigned long long)all);
  return line;
}

int main(int argc, char** argv) {
  touch = argc > 1 && std::strcmp(argv[1], "touch") == 0;
  std::printf("%s\n", work(99).c_str());
  constexpr int count = 6;
  std::vector<std::string> lines(count);
  std::vector<std::thread> threads;
  for (int t = 0; t < count; ++t) threads.emplace_back([&lines, t] { lines[t] = work(t); });
  for (std::thread& t : threads) t.join();
  for (const std::string& line : lines) std::printf("%s\n", line.c_str());
}
