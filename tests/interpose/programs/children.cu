// Kernels that launch kernels: recursion, fire-and-forget launches, tail launches, device-side streams, events, copies
// and fills, and launches that fail.
#include <vector>

#include "check.h"

// Adds up a number for each node of a binary tree, by level: each kernel launches two child kernels, down to level 6.
__global__ void spread(unsigned* sums, int level, int node) {
  atomicAdd(&sums[level], node + 1);
  if (level == 6 || threadIdx.x != 0) return;
  spread<<<1, 1>>>(sums, level + 1, 2 * node);
  spread<<<1, 1, 0, cudaStreamFireAndForget>>>(sums, level + 1, 2 * node + 1);
}

__global__ void fill(int* to, int count, int value) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) to[i] = value + i;
}

__global__ void double_all(int* values, int count) {
  extern __shared__ int held[];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  held[threadIdx.x] = values[i];
  values[i] = 2 * held[threadIdx.x];
}

struct pair {
  int* values;
  char tag;
  double factor;
};

__global__ void scaled(pair what, int count) {
  for (int i = threadIdx.x; i < count; i += blockDim.x) what.values[i] = int(what.values[i] * what.factor) + what.tag;
}

// The work on a stream runs in order; the tail launch runs after the grid and all work that the grid has launched.
__global__ void sum(const int* values, int count, long long* total) {
  long long all = 0;
  for (int i = 0; i < count; ++i) all += values[i];
  *total = all;
}

__global__ void parent(int* values, int* copy, int count, long long* total) {
  if (threadIdx.x != 0 || blockIdx.x != 0) return;
  sum<<<1, 1, 0, cudaStreamTailLaunch>>>(copy, count, total);
  cudaStream_t stream, other;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
  cudaEvent_t done;
  cudaEventCreateWithFlags(&done, cudaEventDisableTiming);
  cudaMemsetAsync(values, 0, count * sizeof(int), stream);
  fill<<<dim3((count + 63) / 64), 64, 0, stream>>>(values, count, 3);
  double_all<<<(count + 63) / 64, 64, 64 * sizeof(int), stream>>>(values, count);
  scaled<<<1, 32, 0, stream>>>(pair{values, 'a', 1.5}, count);
  cudaEventRecord(done, stream);
  cudaStreamWaitEvent(other, done, 0);
  cudaMemcpyAsync(copy, values, count * sizeof(int), cudaMemcpyDeviceToDevice, other);
  cudaEventDestroy(done);
  cudaStreamDestroy(stream);
  cudaStreamDestroy(other);
}

// Launches itself as a tail launch until `left` is 0.
__global__ void again(int* log, int* used, int left) {
  log[(*used)++] = left;
  if (left > 0) again<<<1, 1, 0, cudaStreamTailLaunch>>>(log, used, left - 1);
}

__global__ void wrong(int* answers) {
  fill<<<1, 2048>>>(answers, 1, 0);
  answers[0] = int(cudaPeekAtLastError());
  answers[1] = int(cudaGetLastError());
  answers[2] = int(cudaGetLastError());
  fill<<<0, 32>>>(answers, 1, 0);
  answers[3] = int(cudaGetLastError());
  int devices = 0, device = -1;
  answers[4] = int(cudaGetDevice(&device)) + device;
  answers[5] = cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0;
  void* memory = nullptr;
  answers[6] = cudaMalloc(&memory, 64) == cudaSuccess && memory != nullptr;
  answers[7] = int(cudaFree(memory));
  const char* text = cudaGetErrorString(cudaErrorInvalidValue);
  answers[8] = text[0] == 'i' && text[1] == 'n';
}

int main() {
  unsigned* sums;
  unsigned levels[7] = {};
  CHECK(cudaMalloc(&sums, sizeof levels));
  CHECK(cudaMemset(sums, 0, sizeof levels));
  spread<<<1, 1>>>(sums, 0, 0);
  CHECK(cudaMemcpy(levels, sums, sizeof levels, cudaMemcpyDeviceToHost));
  for (const unsigned each : levels) std::printf("%u ", each);
  std::printf("\n");

  constexpr int count = 1000;
  int *values, *copy;
  long long *total, all = 0;
  CHECK(cudaMalloc(&values, count * sizeof(int)));
  CHECK(cudaMalloc(&copy, count * sizeof(int)));
  CHECK(cudaMalloc(&total, sizeof *total));
  for (int round = 0; round < 3; ++round) {
    parent<<<2, 64>>>(values, copy, count, total);
    CHECK(cudaMemcpy(&all, total, sizeof all, cudaMemcpyDeviceToHost));
    std::printf("total %lld\n", all);
  }
  std::vector<int> out(count);
  CHECK(cudaMemcpy(out.data(), copy, count * sizeof(int), cudaMemcpyDeviceToHost));
  std::printf("copy %016llx\n", (unsigned long long)digest(out.data(), count * sizeof(int)));

  CHECK(cudaMemset(values, 0, count * sizeof(int)));
  CHECK(cudaMemset(copy, 0, count * sizeof(int)));
  again<<<1, 1>>>(values, copy, 100);
  CHECK(cudaMemcpy(out.data(), values, count * sizeof(int), cudaMemcpyDeviceToHost));
  bool descends = true;
  for (int i = 0; i <= 100; ++i) descends = descends && out[i] == 100 - i;
  std::printf("tails of tails %s\n", descends ? "in order" : "WRONG");

  wrong<<<1, 1>>>(values);
  CHECK(cudaMemcpy(out.data(), values, 9 * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < 9; ++i) std::printf("%d ", out[i]);
  std::printf("\n");
}
