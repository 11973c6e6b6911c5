// Compares ways to copy a message from managed memory of one GPU to managed memory of another GPU: by CPU code, as MPI
// copies managed memory, and through device memory. Each way is measured with the pages on the GPUs (kernels wrote
// them) and on the host (CPU code wrote them). The second time in a line is the time of the next use of the received
// bytes. Needs two GPUs; docs/mpi.md has results.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <vector>

#include "check.h"

namespace {

constexpr std::size_t most = std::size_t{16} << 20;

__global__ void write_all(unsigned* p, std::size_t count, unsigned first) {
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < count; i += std::size_t{gridDim.x} * blockDim.x)
    p[i] = first + static_cast<unsigned>(i);
}
__global__ void read_all(const unsigned* p, std::size_t count, unsigned* sum) {
  unsigned mine = 0;
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < count; i += std::size_t{gridDim.x} * blockDim.x)
    mine += p[i];
  atomicAdd(sum, mine);
}

struct gpu {
  unsigned* managed = nullptr;
  unsigned* device = nullptr;
  unsigned* sum = nullptr;
  cudaStream_t stream = nullptr;
};
gpu gpus[2];

void on(int g) { CHECK(cudaSetDevice(g)); }
void copy(int g, void* to, const void* from, std::size_t bytes) {
  on(g);
  CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, gpus[g].stream));
}
void wait(int g) { CHECK(cudaStreamSynchronize(gpus[g].stream)); }

double microseconds_of(const std::function<void()>& f) {
  const auto begin = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
}
double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

}  // namespace

int main() {
  int count = 0;
  CHECK(cudaGetDeviceCount(&count));
  if (count < 2) {
    std::printf("managed_copies needs two GPUs\n");
    return 0;
  }
  for (int g = 0; g < 2; ++g) {
    on(g);
    CHECK(cudaDeviceEnablePeerAccess(1 - g, 0));
    CHECK(cudaMallocManaged(&gpus[g].managed, most));
    CHECK(cudaMalloc(&gpus[g].device, most));
    CHECK(cudaMalloc(&gpus[g].sum, sizeof(unsigned)));
    CHECK(cudaStreamCreateWithFlags(&gpus[g].stream, cudaStreamNonBlocking));
  }
  std::vector<unsigned char> host(most);
  const auto put = [&](bool on_gpus, std::size_t bytes) {
    for (int g = 0; g < 2; ++g) {
      on(g);
      if (on_gpus) write_all<<<264, 256, 0, gpus[g].stream>>>(gpus[g].managed, bytes / sizeof(unsigned), 1U + g);
      wait(g);
      if (!on_gpus) std::memset(gpus[g].managed, g + 1, bytes);
    }
  };
  const auto by_cpu = [&](std::size_t bytes) {
    std::memcpy(host.data(), gpus[0].managed, bytes);
    std::memcpy(gpus[1].managed, host.data(), bytes);
  };
  const auto by_devices = [&](std::size_t bytes) {
    copy(0, gpus[0].device, gpus[0].managed, bytes);
    copy(0, gpus[1].device, gpus[0].device, bytes);
    wait(0);
    copy(1, gpus[1].managed, gpus[1].device, bytes);
    wait(1);
  };
  for (const bool on_gpus : {true, false})
    for (const std::size_t bytes : {std::size_t{4096}, std::size_t{65536}, std::size_t{1} << 20, most})
      for (const bool devices : {false, true})
        for (const bool gpu_reads : {true, false}) {
          std::vector<double> times;
          std::vector<double> next;
          for (int i = 0; i < 9; ++i) {
            put(on_gpus, bytes);
            times.push_back(microseconds_of([&] { devices ? by_devices(bytes) : by_cpu(bytes); }));
            on(1);
            next.push_back(microseconds_of([&] {
              if (gpu_reads) read_all<<<264, 256, 0, gpus[1].stream>>>(gpus[1].managed, bytes / sizeof(unsigned), gpus[1].sum);
              if (gpu_reads) wait(1);
              if (!gpu_reads) std::memcpy(host.data(), gpus[1].managed, bytes);
            }));
          }
          std::printf("pages on the %-4s %9zu bytes, by %-14s %9.1f us; next use by the %s %9.1f us\n", on_gpus ? "GPUs" : "host",
                      bytes, devices ? "device memory" : "CPU code", median(times), gpu_reads ? "GPU" : "CPU", median(next));
        }
}
