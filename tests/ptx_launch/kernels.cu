// The kernels of these tests. kernels.ptx is stored, so that the tests run without the toolkit. nvcc makes it:
//
//   nvcc -ptx -std=c++17 -arch=compute_75 kernels.cu

#include <cassert>
#include <cooperative_groups.h>
#include <cstdio>

extern "C" __global__ void vector_add(float* c, const float* a, const float* b, unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

extern "C" __global__ void add_number(unsigned* values, unsigned n, unsigned number) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) values[i] += number;
}

// Each block reverses its elements, in dynamic shared memory next to static shared memory.
extern "C" __global__ void reverse_blocks(unsigned* values) {
  extern __shared__ unsigned part[];
  __shared__ unsigned last;
  if (threadIdx.x == 0) last = blockDim.x - 1;
  unsigned* const mine = values + blockIdx.x * blockDim.x;
  part[threadIdx.x] = mine[threadIdx.x];
  __syncthreads();
  mine[threadIdx.x] = part[last - threadIdx.x];
}

extern "C" __global__ void write_indices(uint3* blocks, uint3* threads) {
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned size = blockDim.x * blockDim.y * blockDim.z;
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  blocks[block * size + thread] = blockIdx;
  threads[block * size + thread] = threadIdx;
}

// Variables: a counter that each launch increments, constants, and the addresses of a variable and of a function.
__device__ unsigned counter = 40;
__constant__ unsigned factors[3] = {2, 3, 5};
__device__ unsigned* counter_address = &counter;
__device__ unsigned twice(unsigned x) { return 2 * x; }
__device__ unsigned (*function_pointer)(unsigned) = twice;

extern "C" __global__ void use_variables(unsigned* result) {
  result[0] = atomicAdd(counter_address, 1);
  result[1] = factors[0] * factors[1] * factors[2];
  result[2] = function_pointer(21);
}

extern "C" __global__ void print_line(int number, const char* text) {
  if (blockIdx.x == 0 && threadIdx.x == 0) printf("%d %s\n", number, text == nullptr ? "nothing" : text);
}

extern "C" __global__ void print_much(unsigned lines) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < lines) printf("line %08u of the much that is printed here, to fill any buffer that there may be\n", i);
}

// Kernels that fail, each in one thread.
extern "C" __global__ void write_at(unsigned* address, unsigned block, unsigned thread) {
  if (blockIdx.x == block && threadIdx.x == thread) *address = 1;
}
extern "C" __global__ void trap_at(unsigned thread) {
  if (threadIdx.x == thread) __trap();
}
extern "C" __global__ void assert_less(unsigned limit) { assert(threadIdx.x < limit); }

extern "C" __global__ void wait_for_one_another(unsigned* flag) {
  if (threadIdx.x == 0)
    asm volatile("bar.sync 1, 64;");
  else
    asm volatile("bar.sync 2, 64;");
  *flag = 1;
}

__device__ __noinline__ unsigned depth_of(volatile unsigned* stop, unsigned depth) {
  volatile unsigned room[64];
  room[depth % 64] = depth;
  if (*stop == depth) return room[depth % 64];
  return depth_of(stop, depth + 1) + room[depth % 64] - depth;
}
extern "C" __global__ void recurse(unsigned* stop, unsigned* result) { *result = depth_of(stop, 0); }

extern "C" __global__ void call_pointer(unsigned (*function)(unsigned), unsigned* result) { *result = function(4); }

// All blocks together add up all values; the blocks wait twice at a grid barrier.
extern "C" __global__ void sum_together(unsigned* values, unsigned* totals) {
  const auto grid = cooperative_groups::this_grid();
  totals[grid.thread_rank()] = values[grid.thread_rank()];
  grid.sync();
  unsigned sum = 0;
  for (unsigned i = 0; i < grid.size(); ++i) sum += totals[i];
  grid.sync();
  totals[grid.thread_rank()] = sum;
}

// Builds a list of lists on the device's heap, which remain after the launch.
extern "C" __global__ void build_list(unsigned** lists, unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned* const list = static_cast<unsigned*>(malloc(n * sizeof(unsigned)));
  for (unsigned k = 0; list != nullptr && k < n; ++k) list[k] = i * n + k;
  lists[i] = list;
}
extern "C" __global__ void sum_list(unsigned** lists, unsigned n, unsigned* sums) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned sum = 0;
  for (unsigned k = 0; k < n; ++k) sum += lists[i][k];
  sums[i] = sum;
  free(lists[i]);
}

struct many {
  unsigned values[1020];  // 4080 bytes
};
extern "C" __global__ void sum_parameters(const many all, unsigned* result) {
  unsigned sum = 0;
  for (unsigned i = 0; i < 1020; ++i) sum += all.values[i];
  *result = sum;
}

extern "C" __global__ void __launch_bounds__(64) bounded(unsigned* values) { values[threadIdx.x] = threadIdx.x; }

extern "C" __global__ void spin(const volatile unsigned* stop, unsigned* result) {
  while (*stop == 0) {
  }
  *result = *stop;
}
