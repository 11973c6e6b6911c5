// Runs a kernel with an error, and prints the results that the program gets:
//
//   faults bounds|null|host|misaligned|shared|assert|trap|surface|stack|launch
//
// All lines except the last are names of errors; the last line has further information, such as an address. These
// kernels have errors that need not cause a failure:
//
//   faults warps|below|waiting [BLOCKS]
#include <cassert>
#include <cstring>
#include <string>

#include "tests/interpose/programs/check.h"

__global__ void write_beyond(int* data, long offset) {
  if (blockIdx.x == 2 && threadIdx.x == 37) data[offset] = 1;
}

__global__ void read_misaligned(const char* data, int* out) {
  if (blockIdx.x == 2 && threadIdx.x == 37) *out = *reinterpret_cast<const int*>(data + 2);
}

__global__ void check_limit(int limit) { assert(int(threadIdx.x) < limit && "too many"); }

__global__ void give_up() {
  if (blockIdx.x == 2 && threadIdx.x == 37) __trap();
}

__device__ __noinline__ int deeper(int* keep, int n) {
  int mine[64];
  for (int i = 0; i < 64; ++i) mine[i] = keep[i] + n;
  const int below = n < 0 ? 0 : deeper(mine, n + 1);
  return below + mine[n & 63];
}
__global__ void recurse(int* data) { data[64] = deeper(data, data[0]); }

__global__ void write_row(cudaSurfaceObject_t surface, int row) {
  if (blockIdx.x == 2 && threadIdx.x == 37) surf2Dwrite(1.0F, surface, 4 * int(threadIdx.x), row);
}

__global__ void fill_tile() {  // is launched without dynamic shared memory
  extern __shared__ volatile int s[];
  if (blockIdx.x == 2 && threadIdx.x == 37) s[threadIdx.x] = 1;
}

__global__ void add_in_warp(int* out) {  // written for GPUs before Volta, without __syncwarp
  __shared__ volatile int sums[64];
  const int t = threadIdx.x;
  sums[t] = t;
  __syncthreads();
  if (t < 32) {
    for (int step = 32; step > 0; step /= 2) sums[t] += sums[t + step];
  }
  if (t == 0) *out = sums[0];
}

__global__ void read_below(int* data) { data[0] = data[-1] + data[-1000]; }

__global__ void wait_for_all(volatile int* count, int blocks) {
  if (threadIdx.x != 0) return;
  atomicAdd(const_cast<int*>(count), 1);
  while (*count < blocks) {
  }
}

static cudaSurfaceObject_t make_surface(int width, int height) {
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeArray;
  CHECK(cudaMallocArray(&resource.res.array.array, &format, width, height, cudaArraySurfaceLoadStore));
  cudaSurfaceObject_t made;
  CHECK(cudaCreateSurfaceObject(&made, &resource));
  return made;
}

static void tell(const char* when, cudaError_t error) { std::printf("%s: %s\n", when, cudaGetErrorName(error)); }

static int run_other(const std::string& which, int* data, int blocks) {
  if (which == "warps") {
    add_in_warp<<<1, 64>>>(data);
  } else if (which == "below") {
    read_below<<<1, 1>>>(data);
  } else {
    int each = 0, processors = 0;
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, wait_for_all, 64, 0));
    CHECK(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0));
    if (blocks == 0) blocks = each * processors;
    CHECK(cudaMemset(data, 0, 4));
    wait_for_all<<<blocks, 64>>>(data, blocks);
  }
  tell("synchronize", cudaDeviceSynchronize());
  int result = 0;
  tell("copy", cudaMemcpy(&result, data, 4, cudaMemcpyDeviceToHost));
  std::printf("result: %d\n", result);
  return 0;
}

int main(int argc, char** argv) {
  const std::string which = argc > 1 ? argv[1] : "";
  int* data;
  CHECK(cudaMalloc(&data, 100 * sizeof(int)));
  CHECK(cudaMemset(data, 0, 100 * sizeof(int)));
  if (which == "warps" || which == "below" || which == "waiting")
    return run_other(which, data, argc > 2 ? std::atoi(argv[2]) : 0);
  char told[64] = "";
  if (which == "bounds") {
    constexpr long beyond = 3L << 30;
    std::snprintf(told, sizeof told, "%lx", reinterpret_cast<unsigned long>(data + beyond));
    write_beyond<<<5, 64>>>(data, beyond);
  } else if (which == "null") {
    std::snprintf(told, sizeof told, "0x28");
    write_beyond<<<5, 64>>>(nullptr, 10);
  } else if (which == "host") {  // a device cannot access ordinary host memory
    static int of_the_host;
    std::snprintf(told, sizeof told, "%lx", reinterpret_cast<unsigned long>(&of_the_host));
    write_beyond<<<5, 64>>>(&of_the_host, 0);
  } else if (which == "misaligned") {
    std::snprintf(told, sizeof told, "%lx", reinterpret_cast<unsigned long>(data) + 2);
    read_misaligned<<<5, 64>>>(reinterpret_cast<const char*>(data), data);
  } else if (which == "shared") {
    fill_tile<<<5, 64>>>();
  } else if (which == "assert") {
    check_limit<<<1, 64>>>(50);
  } else if (which == "trap") {
    give_up<<<5, 64>>>();
  } else if (which == "surface") {
    const cudaSurfaceObject_t surface = make_surface(64, 5);
    write_row<<<5, 64>>>(surface, 4);
    CHECK(cudaDeviceSynchronize());  // writes to the last row
    write_row<<<5, 64>>>(surface, 5);
  } else if (which == "stack") {
    recurse<<<1, 1>>>(data);
  } else if (which == "launch") {  // the launch is refused before it runs, so the error is not sticky
    write_beyond<<<1, 2048>>>(data, 0);
    tell("launch", cudaGetLastError());
    tell("next", cudaGetLastError());
    tell("synchronize", cudaDeviceSynchronize());
    tell("copy", cudaMemset(data, 1, 4));
    return 0;
  } else {
    return 2;
  }
  tell("launch", cudaGetLastError());
  tell("synchronize", cudaDeviceSynchronize());
  tell("last", cudaGetLastError());
  tell("last again", cudaGetLastError());
  int* more = nullptr;
  tell("malloc", cudaMalloc(&more, 4));
  tell("copy", cudaMemcpy(told + 60, data, 4, cudaMemcpyDeviceToHost));
  give_up<<<1, 1>>>();
  tell("another launch", cudaGetLastError());
  std::printf("%s\n", told);
}
