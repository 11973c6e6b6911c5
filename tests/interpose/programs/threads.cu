// Threads with their own streams, with the shared default stream, and with per-thread default streams (if the program
// is compiled with them); and stream-ordered allocation.
#include <string>
#include <thread>
#include <vector>

#include "check.h"

__global__ void mix(std::uint64_t* p, std::size_t n, std::uint64_t k) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < n) p[i] = (p[i] ^ k) * 0x100000001b3ULL;
}

static std::string work(int t) {
  const std::size_t n = (std::size_t{1} << 19) + 1000 * t, bytes = n * 8;
  std::vector<std::uint64_t> host(n);
  cudaStream_t stream = nullptr;
  if (t % 2 == 0) CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  std::uint64_t total = 0;
  for (int round = 0; round < 20; ++round) {
    for (std::size_t i = 0; i < n; ++i) host[i] = i + t + round;
    std::uint64_t* device;
    CHECK(cudaMallocAsync(&device, bytes, stream));
    CHECK(cudaMemcpyAsync(device, host.data(), bytes, cudaMemcpyHostToDevice, stream));
    mix<<<unsigned((n + 255) / 256), 256, 0, stream>>>(device, n, t);
    CHECK(cudaMemcpyAsync(host.data(), device, bytes, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaFreeAsync(device, stream));
    CHECK(cudaStreamSynchronize(stream));
    total ^= digest(host.data(), bytes);
  }
  char line[80];
  std::snprintf(line, sizeof line, "thread %d: %016llx", t, (unsigned long long)total);
  return line;
}

int main() {
  constexpr int count = 8;
  std::vector<std::string> lines(count);
  std::vector<std::thread> threads;
  for (int t = 0; t < count; ++t) threads.emplace_back([&lines, t] { lines[t] = work(t); });
  for (std::thread& t : threads) t.join();
  for (const std::string& line : lines) std::printf("%s\n", line.c_str());
}
