// A program for one device whose kernels run in parts under `hpe run --spread`: the order between the default stream,
// blocking and non-blocking streams, arrays that change between launches, output of kernels, and at the end a fault in
// the last block.
//   one_device
#include <vector>

#include "check.h"

namespace {

constexpr unsigned n = 1U << 24U;  // 64 MiB
constexpr unsigned threads = 256, blocks = n / threads;

__global__ void fill(unsigned* a, unsigned value) { a[blockIdx.x * blockDim.x + threadIdx.x] = value; }

// Counts the elements that differ from a value.
__global__ void count(const unsigned* a, unsigned value, unsigned* wrong) {
  if (a[blockIdx.x * blockDim.x + threadIdx.x] != value) atomicAdd(wrong, 1U);
}

// Each block reads elements from the whole array; each thread reads a small part of them.
__global__ void gather(const unsigned* a, unsigned* sums) {
  unsigned sum = 0;
  for (unsigned i = threadIdx.x; i < n; i += blockDim.x * 1024) sum += a[i];
  atomicAdd(&sums[blockIdx.x], sum);
}

__global__ void tell() { printf("block %u\n", blockIdx.x); }

__global__ void stray(unsigned* a) {
  if (blockIdx.x == gridDim.x - 1) a[(std::size_t{1} << 40U) + threadIdx.x] = 1;
}

}  // namespace

int main() {
  unsigned *a = nullptr, *wrong = nullptr, *sums = nullptr, found = 0;
  CHECK(cudaMalloc(&a, n * sizeof *a));
  CHECK(cudaMalloc(&wrong, sizeof *wrong));
  CHECK(cudaMalloc(&sums, 512 * sizeof *sums));
  CHECK(cudaMemset(wrong, 0, sizeof *wrong));
  cudaStream_t blocking = nullptr, free = nullptr;
  cudaEvent_t filled = nullptr, counted = nullptr;
  CHECK(cudaStreamCreate(&blocking));
  CHECK(cudaStreamCreateWithFlags(&free, cudaStreamNonBlocking));
  CHECK(cudaEventCreate(&filled));
  CHECK(cudaEventCreate(&counted));

  // The default stream and a blocking stream wait for each other.
  for (unsigned round = 0; round < 50; ++round) {
    fill<<<blocks, threads>>>(a, round);
    count<<<blocks, threads, 0, blocking>>>(a, round, wrong);
  }
  CHECK(cudaMemcpy(&found, wrong, sizeof found, cudaMemcpyDeviceToHost));
  printf("default and blocking stream: %u wrong\n", found);

  // Non-blocking streams wait for each other by events.
  for (unsigned round = 0; round < 50; ++round) {
    CHECK(cudaStreamWaitEvent(free, counted, 0));
    fill<<<blocks, threads, 0, free>>>(a, round + 100);
    CHECK(cudaEventRecord(filled, free));
    CHECK(cudaStreamWaitEvent(blocking, filled, 0));
    count<<<blocks, threads, 0, blocking>>>(a, round + 100, wrong);
    CHECK(cudaEventRecord(counted, blocking));
  }
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpy(&found, wrong, sizeof found, cudaMemcpyDeviceToHost));
  printf("streams with events: %u wrong\n", found);

  // Kernels, memsets and copies change an array that all blocks read.
  std::vector<unsigned> host(n, 5), all(512);
  std::uint64_t seen = 0;
  for (unsigned round = 0; round < 12; ++round) {
    if (round % 3 == 0) fill<<<blocks, threads>>>(a, round + 1);
    if (round % 3 == 1) CHECK(cudaMemset(a, (int)round, n * sizeof *a));
    if (round % 3 == 2) CHECK(cudaMemcpy(a, host.data(), n * sizeof *a, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(sums, 0, 512 * sizeof *sums));
    gather<<<512, threads>>>(a, sums);
    gather<<<512, threads>>>(a, sums);
    CHECK(cudaMemcpy(all.data(), sums, 512 * sizeof *sums, cudaMemcpyDeviceToHost));
    seen = seen * 31 + digest(all.data(), 512 * sizeof *sums);
  }
  printf("gathered %llx\n", (unsigned long long)seen);

  tell<<<4, 1>>>();
  CHECK(cudaDeviceSynchronize());

  stray<<<512, 32>>>(a);
  const cudaError_t error = cudaDeviceSynchronize();
  printf("stray: %s, then %s\n", cudaGetErrorName(error), cudaGetErrorName(cudaMemset(a, 0, n)));
}
