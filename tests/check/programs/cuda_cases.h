#pragma once

// Memory, streams and kernels of the cases of the CUDA runtime.

#include <cuda_runtime.h>

#include "tests/check/programs/cases.h"
#include "tests/interpose/programs/check.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

static __global__ void fill(int* p, int n, int value) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] = value;
}

static __global__ void add(int* p, int n, int value) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] += value;
}

static __global__ void twice(int* to, const int* from, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] = 2 * from[i];
}

// Whether the machine has two devices; otherwise skips the case.
inline bool has_two_devices() {
  int devices = 0;
  CHECK(cudaGetDeviceCount(&devices));
  if (devices < 2) skip();
  return devices >= 2;
}

// Waits for the work of all devices, and makes device 0 the current device.
inline void wait_for_all() {
  int devices = 0;
  CHECK(cudaGetDeviceCount(&devices));
  while (devices-- > 0) {
    CHECK(cudaSetDevice(devices));
    CHECK(cudaDeviceSynchronize());
  }
}

// `count` numbers, which the destructors of derived classes free.
struct int_memory {
  int* p = nullptr;
  int_memory() = default;
  int_memory(const int_memory&) = delete;
  int_memory& operator=(const int_memory&) = delete;
  operator int*() const { return p; }
};

// `count` zeros in the current device's memory.
struct ints : int_memory {
  ints() {
    CHECK(cudaMalloc(&p, bytes));
    CHECK(cudaMemset(p, 0, bytes));
    CHECK(cudaDeviceSynchronize());
  }
  ~ints() {
    wait_for_all();
    CHECK(cudaFree(p));
  }
};

// `count` zeros in pinned memory.
struct pinned_ints : int_memory {
  explicit pinned_ints(unsigned flags = cudaHostAllocDefault) {
    CHECK(cudaHostAlloc(&p, bytes, flags));
    for (int i = 0; i < count; ++i) p[i] = 0;
  }
  ~pinned_ints() {
    wait_for_all();
    CHECK(cudaFreeHost(p));
  }
};

// `count` zeros in managed memory.
struct managed_ints : int_memory {
  managed_ints() {
    CHECK(cudaMallocManaged(&p, bytes));
    for (int i = 0; i < count; ++i) p[i] = 0;
  }
  ~managed_ints() {
    wait_for_all();
    CHECK(cudaFree(p));
  }
};

struct stream {
  cudaStream_t s;
  explicit stream(unsigned flags = cudaStreamNonBlocking) { CHECK(cudaStreamCreateWithFlags(&s, flags)); }
  stream(const stream&) = delete;
  stream& operator=(const stream&) = delete;
  ~stream() {
    wait_for_all();
    CHECK(cudaStreamDestroy(s));
  }
  operator cudaStream_t() const { return s; }
};

struct event {
  cudaEvent_t e;
  event() { CHECK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming)); }
  event(const event&) = delete;
  event& operator=(const event&) = delete;
  ~event() { CHECK(cudaEventDestroy(e)); }
  operator cudaEvent_t() const { return e; }
};

// Frames of cases.

struct pinned_copy {
  ints p;
  pinned_ints x;
  stream a;
};

struct two_streams {
  ints p, q;
  stream a, b;
};
