#include "kernels.h"

namespace {

__device__ int counter = 5;
__constant__ float coefficients[4] = {1, 2, 3, 4};
__managed__ int managed_value = 7;

__global__ void add(const float* a, const float* b, float* sum, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) sum[i] = a[i] + b[i];
}

__global__ void parameters(char letter, double number, packet p, short small, std::int64_t* out) {
  out[0] = letter;
  out[1] = static_cast<std::int64_t>(number);
  out[2] = p.small;
  out[3] = static_cast<std::int64_t>(p.wide);
  out[4] = p.letters[0];
  out[5] = p.letters[4];
  out[6] = small;
  out[7] = gridDim.x * 1000 + blockDim.x;
}

__global__ void shared_memory(int* out) {
  extern __shared__ int room[];
  room[threadIdx.x] = static_cast<int>(threadIdx.x);
  __syncthreads();
  out[threadIdx.x] = room[blockDim.x - 1 - threadIdx.x];
}

__global__ void static_shared(int* out) {
  __shared__ int room[1024];
  room[threadIdx.x] = static_cast<int>(threadIdx.x);
  __syncthreads();
  out[threadIdx.x] = room[blockDim.x - 1 - threadIdx.x];
}

__global__ void __launch_bounds__(128) bounded() {}

__global__ void variables(int* out) {
  out[0] = counter++;
  out[1] = static_cast<int>(coefficients[3]);
  out[2] = managed_value++;
}

__global__ void store(int* where) { *where = 1; }

__global__ void trap() { asm volatile("trap;"); }

}  // namespace

const void* kernel_add() { return reinterpret_cast<const void*>(add); }
const void* kernel_parameters() { return reinterpret_cast<const void*>(parameters); }
const void* kernel_shared() { return reinterpret_cast<const void*>(shared_memory); }
const void* kernel_static_shared() { return reinterpret_cast<const void*>(static_shared); }
const void* kernel_bounded() { return reinterpret_cast<const void*>(bounded); }
const void* kernel_variables() { return reinterpret_cast<const void*>(variables); }
const void* kernel_store() { return reinterpret_cast<const void*>(store); }
const void* kernel_trap() { return reinterpret_cast<const void*>(trap); }

const void* symbol_counter() { return &counter; }
const void* symbol_coefficients() { return coefficients; }
const void* symbol_managed() { return &managed_value; }

int read_managed_on_host() { return managed_value; }
void write_managed_on_host(int value) { managed_value = value; }

void launch_add(const float* a, const float* b, float* sum, int count, int blocks, int threads) {
  add<<<blocks, threads>>>(a, b, sum, count);
}
