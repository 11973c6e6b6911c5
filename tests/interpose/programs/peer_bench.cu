// Measures the rate of copies between two devices without peer access, in one direction and in both directions at once.
// Prints nothing on machines with one device.
#include <algorithm>
#include <chrono>
#include <vector>

#include "check.h"

template <class Work>
static double median(int repeats, Work work) {
  std::vector<double> times;
  for (int r = 0; r < repeats; ++r) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

int main() {
  constexpr std::size_t bytes = std::size_t{256} << 20;
  int devices = 0;
  CHECK(cudaGetDeviceCount(&devices));
  if (devices < 2) return 0;
  char *from[2], *to[2];
  cudaStream_t stream[2];
  for (int d = 0; d < 2; ++d) {
    CHECK(cudaSetDevice(d));
    CHECK(cudaMalloc(&from[d], bytes));
    CHECK(cudaMalloc(&to[d], bytes));
    CHECK(cudaMemset(from[d], 17 + d, bytes));
    CHECK(cudaStreamCreateWithFlags(&stream[d], cudaStreamNonBlocking));
    CHECK(cudaDeviceSynchronize());
  }
  const auto queue = [&](int d) { CHECK(cudaMemcpyPeerAsync(to[1 - d], 1 - d, from[d], d, bytes, stream[d])); };
  const auto wait = [&](int d) { CHECK(cudaStreamSynchronize(stream[d])); };
  const auto on = [&](int d, auto work) {
    CHECK(cudaSetDevice(d));
    work(d);
  };
  const auto one = [&] { on(0, queue), on(0, wait); };
  const auto both = [&] { on(0, queue), on(1, queue), on(0, wait), on(1, wait); };
  one();
  std::printf("peer one way  %6.1f GB/s\n", bytes / median(9, one) / 1e9);
  std::printf("peer two ways %6.1f GB/s\n", 2 * bytes / median(9, both) / 1e9);
}
