// Queues work on several streams, ordered by events, with pageable and pinned copies in between; overwrites the source
// as soon as a call for a pageable copy has returned.
#include <cstring>
#include <vector>

#include "check.h"

__global__ void step(std::uint64_t* p, std::size_t n, std::uint64_t k) {
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n;
       i += std::size_t{gridDim.x} * blockDim.x)
    p[i] = p[i] * 6364136223846793005ULL + k;
}

int main() {
  constexpr std::size_t n = (std::size_t{24} << 20) / 8 + 5, bytes = n * 8;
  constexpr int streams = 4;
  cudaStream_t stream[streams];
  cudaEvent_t event[streams];
  std::uint64_t* device[streams];
  std::vector<std::uint64_t> host(n), result(n);
  std::uint64_t* pinned;
  CHECK(cudaMallocHost(&pinned, bytes));
  for (int s = 0; s < streams; ++s) {
    CHECK(cudaStreamCreateWithFlags(&stream[s], s % 2 == 0 ? cudaStreamNonBlocking : cudaStreamDefault));
    CHECK(cudaEventCreateWithFlags(&event[s], cudaEventDisableTiming));
    CHECK(cudaMalloc(&device[s], bytes));
  }
  for (int round = 0; round < 6; ++round) {
    for (int s = 0; s < streams; ++s) {
      for (std::size_t i = 0; i < n; ++i) host[i] = i * (s + 1) + round;
      CHECK(cudaMemcpyAsync(device[s], host.data(), bytes, cudaMemcpyHostToDevice, stream[s]));
      std::memset(host.data(), 0xee, bytes);
      for (int k = 0; k < 5; ++k) step<<<64, 256, 0, stream[s]>>>(device[s], n, k);
      if (s > 0) {
        CHECK(cudaStreamWaitEvent(stream[s], event[s - 1], 0));
        CHECK(cudaMemcpyAsync(device[s], device[s - 1], bytes / 2, cudaMemcpyDeviceToDevice, stream[s]));
        step<<<64, 256, 0, stream[s]>>>(device[s], n, 99);
      }
      CHECK(cudaEventRecord(event[s], stream[s]));
    }
    for (int s = 0; s < streams; ++s) {
      CHECK(cudaMemcpyAsync(result.data(), device[s], bytes, cudaMemcpyDeviceToHost, stream[s]));
      CHECK(cudaMemcpyAsync(pinned, device[s], bytes, cudaMemcpyDeviceToHost, stream[s]));
      CHECK(cudaStreamSynchronize(stream[s]));
      std::printf("round %d stream %d: %016llx %016llx\n", round, s, (unsigned long long)digest(result.data(), bytes),
                  (unsigned long long)digest(pinned, bytes));
    }
  }
  CHECK(cudaDeviceSynchronize());
}
