// Measures the rate of copies of pageable memory, and of a loop that gains nothing from hpe; with the argument "touch",
// also the rate at which CPU code uses device memory, which needs hpe. The output has measured numbers, so it cannot be
// compared between runs.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "check.h"

__global__ void nothing(int*) {}

__global__ void increase(unsigned* p, std::size_t n) {
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += std::size_t{gridDim.x} * blockDim.x) p[i] += 1;
}

template <class Work>
static double seconds(Work work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

template <class Work>
static double median(int repeats, Work work) {
  std::vector<double> times;
  for (int r = 0; r < repeats; ++r) times.push_back(seconds(work));
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

int main(int argc, char** argv) {
  constexpr std::size_t bytes = std::size_t{256} << 20;
  char *host = static_cast<char*>(std::malloc(bytes)), *back = static_cast<char*>(std::malloc(bytes)), *pinned, *device;
  std::memset(back, 1, bytes);
  for (std::size_t i = 0; i < bytes; ++i) host[i] = char(i * 7 + (i >> 12));
  CHECK(cudaMalloc(&device, bytes));
  CHECK(cudaMallocHost(&pinned, bytes));
  const auto up = [&] { CHECK(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice)); };
  const auto down = [&] { CHECK(cudaMemcpy(back, device, bytes, cudaMemcpyDeviceToHost)); };
  up();
  down();
  std::printf("pageable up   %6.1f GB/s\n", bytes / median(9, up) / 1e9);
  std::printf("pageable down %6.1f GB/s\n", bytes / median(9, down) / 1e9);
  std::printf("identical     %s\n", std::memcmp(host, back, bytes) == 0 ? "yes" : "NO");
  for (const std::size_t part : {std::size_t{1} << 20, std::size_t{4} << 20, std::size_t{16} << 20})
    std::printf("pageable %2zu MiB up %6.1f down %6.1f GB/s\n", part >> 20,
                part / median(41, [&] { CHECK(cudaMemcpy(device, host, part, cudaMemcpyHostToDevice)); }) / 1e9,
                part / median(41, [&] { CHECK(cudaMemcpy(back, device, part, cudaMemcpyDeviceToHost)); }) / 1e9);
  std::printf("pinned up     %6.1f GB/s\n",
              bytes / median(9, [&] { CHECK(cudaMemcpy(device, pinned, bytes, cudaMemcpyHostToDevice)); }) / 1e9);
  const auto launches = [&] {
    for (int i = 0; i < 20000; ++i) nothing<<<1, 32>>>(reinterpret_cast<int*>(device));
    CHECK(cudaDeviceSynchronize());
  };
  launches();
  std::printf("launch        %6.0f ns\n", median(9, launches) / 20000 * 1e9);
  const auto small = [&] {
    for (int i = 0; i < 2000; ++i) CHECK(cudaMemcpy(device, pinned, 4096, cudaMemcpyHostToDevice));
  };
  std::printf("small copy    %6.0f ns\n", median(9, small) / 2000 * 1e9);
  if (argc < 2 || std::strcmp(argv[1], "touch") != 0) return 0;
  auto* const direct = reinterpret_cast<volatile std::uint64_t*>(device);
  std::uint64_t sum = 0;
  for (int round = 0; round < 3; ++round) {
    increase<<<256, 256>>>(reinterpret_cast<unsigned*>(device), bytes / 4);
    CHECK(cudaDeviceSynchronize());
    const double read = seconds([&] {
      for (std::size_t i = 0; i < bytes / 8; ++i) sum += direct[i];
    });
    const double write = seconds([&] {
      for (std::size_t i = 0; i < bytes / 8; ++i) direct[i] = sum + i;
      increase<<<256, 256>>>(reinterpret_cast<unsigned*>(device), bytes / 4);
      CHECK(cudaDeviceSynchronize());
    });
    std::printf("host reads    %6.1f GB/s, writes and a kernel runs %6.1f GB/s\n", bytes / read / 1e9, bytes / write / 1e9);
  }
}
