// Features of CUDA C++ and of libcu++ that programs like CUDA's samples use. Each part computes a known result.
//
//     language <part>

#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda_fp16.h>
#include <mma.h>

#include <cstring>
#include <vector>

#include "tests/interpose/programs/check.h"

namespace cg = cooperative_groups;

template <class T>
T* managed(std::size_t count) {
  T* memory;
  CHECK(cudaMallocManaged(&memory, count * sizeof(T)));
  std::memset(static_cast<void*>(memory), 0, count * sizeof(T));
  return memory;
}

// Uses groups of threads in a warp, by size, parity and label. Counts wrong results.
__global__ void groups(int* wrong) {
  const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  const auto four = cg::tiled_partition<4>(warp);
  const int rank = warp.thread_rank();
  if (cg::reduce(four, rank, cg::greater<int>()) != (rank | 3)) atomicAdd(wrong, 1);
  if (cg::inclusive_scan(warp, rank) != rank * (rank + 1) / 2) atomicAdd(wrong, 1);
  if (cg::exclusive_scan(warp, 2) != 2 * rank) atomicAdd(wrong, 1);
  if (cg::reduce(cg::binary_partition(warp, rank % 2 == 0), 1, cg::plus<int>()) != 16) atomicAdd(wrong, 1);
  const auto same = cg::labeled_partition(warp, rank % 5);
  if (cg::reduce(same, rank % 5, cg::plus<int>()) != rank % 5 * int(same.size())) atomicAdd(wrong, 1);
  if (rank % 3 == 0 && cg::coalesced_threads().size() != 11) atomicAdd(wrong, 1);
}

bool groups_are_right() {
  int* wrong = managed<int>(1);
  groups<<<3, 256>>>(wrong);
  CHECK(cudaDeviceSynchronize());
  return *wrong == 0;
}

// Uses a barrier of libcu++: in each round, every thread reads its neighbour's value.
__global__ void rounds(int* out) {
  __shared__ cuda::barrier<cuda::thread_scope_block> arrived;
  __shared__ int values[256];
  const unsigned i = threadIdx.x;
  if (i == 0) init(&arrived, blockDim.x);
  __syncthreads();
  for (int round = 1; round <= 4; ++round) {
    values[i] = int(i) * round;
    arrived.wait(arrived.arrive());
    out[i] += values[(i + 1) % 256];
    arrived.arrive_and_wait();
  }
}

bool barriers_are_right() {
  int* out = managed<int>(256);
  rounds<<<1, 256>>>(out);
  CHECK(cudaDeviceSynchronize());
  for (int i = 0; i < 256; ++i)
    if (out[i] != 10 * ((i + 1) % 256)) return false;
  return true;
}

// Reverses tiles; the next tile is copied to shared memory while a tile is reversed.
__global__ void turn(const int* in, int* out, int tiles) {
  __shared__ int buffer[2][128];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  const auto block = cg::this_thread_block();
  auto pipe = cuda::make_pipeline(block, &state);
  const auto fetch = [&](int tile) {
    pipe.producer_acquire();
    cuda::memcpy_async(block, buffer[tile % 2], in + tile * 128, sizeof buffer[0], pipe);
    pipe.producer_commit();
  };
  fetch(0);
  for (int tile = 0; tile < tiles; ++tile) {
    if (tile + 1 < tiles) fetch(tile + 1);
    pipe.consumer_wait();
    out[tile * 128 + threadIdx.x] = buffer[tile % 2][127 - threadIdx.x];
    block.sync();
    pipe.consumer_release();
  }
}

bool pipelines_are_right() {
  constexpr int n = 128 * 9;
  int* in = managed<int>(n);
  int* out = managed<int>(n);
  for (int i = 0; i < n; ++i) in[i] = i * i;
  turn<<<1, 128>>>(in, out, 9);
  CHECK(cudaDeviceSynchronize());
  for (int i = 0; i < n; ++i)
    if (out[i] != in[i / 128 * 128 + 127 - i % 128]) return false;
  return true;
}

// The block that finishes last adds the partial sums of all blocks.
__device__ unsigned arrived_blocks = 0;
__device__ volatile int partial[64];

__global__ void sum(const int* in, int* out, int n) {
  __shared__ int of_block;
  __shared__ bool is_last;
  if (threadIdx.x == 0) of_block = 0;
  __syncthreads();
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd_block(&of_block, in[i]);
  __syncthreads();
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = of_block;
    __threadfence();
    is_last = atomicInc(&arrived_blocks, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (!is_last || threadIdx.x != 0) return;
  for (unsigned b = 0; b < gridDim.x; ++b) *out += partial[b];
}

__global__ void count(cuda::atomic<int, cuda::thread_scope_device>* counter, int* largest) {
  int seen = counter->load();
  while (!counter->compare_exchange_weak(seen, seen + 2)) {
  }
  cuda::atomic_ref<int, cuda::thread_scope_device>(*largest).fetch_max(int(threadIdx.x));
}

bool fences_and_atomics_are_right() {
  constexpr int n = 10007;
  int* in = managed<int>(n);
  int* out = managed<int>(4);
  int wanted = 0;
  for (int i = 0; i < n; ++i) wanted += in[i] = i % 97 - 40;
  for (int round = 1; round <= 2; ++round) {
    sum<<<32, 128>>>(in, out, n);
    CHECK(cudaDeviceSynchronize());
    if (out[0] != round * wanted) return false;
  }
  count<<<4, 96>>>(reinterpret_cast<cuda::atomic<int, cuda::thread_scope_device>*>(out + 1), out + 2);
  CHECK(cudaDeviceSynchronize());
  return out[1] == 2 * 4 * 96 && out[2] == 95;
}

// Multiplies small integers, whose products and sums are exact.
__global__ void multiply(const half* a, const half* b, float* c) {
  using namespace nvcuda;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> right;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> result;
  wmma::fill_fragment(result, 1.0F);
  wmma::load_matrix_sync(left, a, 16);
  wmma::load_matrix_sync(right, b, 16);
  wmma::mma_sync(result, left, right, result);
  for (int i = 0; i < result.num_elements; ++i) result.x[i] *= 2;
  wmma::store_matrix_sync(c, result, 16, wmma::mem_row_major);
}

bool matrices_are_right() {
  half* a = managed<half>(256);
  half* b = managed<half>(256);
  float* c = managed<float>(256);
  for (int i = 0; i < 256; ++i) {
    a[i] = __float2half(float(i % 7));
    b[i] = __float2half(float(i % 5));
  }
  multiply<<<1, 32>>>(a, b, c);
  CHECK(cudaDeviceSynchronize());
  for (int i = 0; i < 256; ++i) {
    int wanted = 1;
    for (int k = 0; k < 16; ++k) wanted += (i / 16 * 16 + k) % 7 * ((i % 16 * 16 + k) % 5);
    if (c[i] != float(2 * wanted)) return false;
  }
  return true;
}

// Objects with virtual functions, created and deleted in a kernel.
struct shape {
  __device__ virtual float area() const = 0;
  __device__ virtual ~shape() {}
};
struct square : shape {
  float side;
  __device__ explicit square(float s) : side(s) {}
  __device__ float area() const override { return side * side; }
};
struct rectangle : square {
  using square::square;
  __device__ float area() const override { return side * 3; }
};

__global__ void areas(float* out) {
  const auto side = float(threadIdx.x);
  shape* const made = threadIdx.x % 2 == 0 ? new square(side) : new rectangle(side);
  out[threadIdx.x] = made->area();
  delete made;
}

bool objects_are_right() {
  float* out = managed<float>(64);
  areas<<<1, 64>>>(out);
  CHECK(cudaDeviceSynchronize());
  for (int i = 0; i < 64; ++i)
    if (out[i] != float(i % 2 == 0 ? i * i : 3 * i)) return false;
  return true;
}

int main(int argc, char** argv) {
  const struct {
    const char* name;
    bool (*is_right)();
  } parts[] = {{"groups", groups_are_right},       {"barriers", barriers_are_right},
               {"pipelines", pipelines_are_right}, {"fences", fences_and_atomics_are_right},
               {"matrices", matrices_are_right},   {"objects", objects_are_right}};
  for (const auto& part : parts) {
    if (argc != 2 || std::strcmp(argv[1], part.name) != 0) continue;
    const bool right = part.is_right();
    std::printf("%s: %s\n", part.name, right ? "right" : "wrong");
    return right ? 0 : 1;
  }
  return 2;
}
