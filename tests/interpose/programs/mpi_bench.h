#pragma once

/// Common code of the MPI benchmarks: times, and buffers with known content.
#define OMPI_SKIP_MPICXX
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

#include "check.h"

inline constexpr std::size_t room = std::size_t{1} << 30;
inline constexpr int window = 64;  ///< the number of messages in flight
inline const std::size_t message_sizes[] = {1,       8,       512,     4096,     32768,   65536,
                                            1 << 18, 1 << 20, 1 << 22, 16 << 20, 64 << 20};

inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

inline double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

inline int rank() {
  int r = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &r);
  return r;
}

__device__ inline unsigned char byte_of(std::uint64_t seed, std::size_t i) {
  std::uint64_t z = (seed + i) * 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 31)) * 0xbf58476d1ce4e5b9ULL;
  return static_cast<unsigned char>(z >> 37);
}
static __global__ void fill(unsigned char* p, std::size_t bytes, std::uint64_t seed) {
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < bytes;
       i += std::size_t{gridDim.x} * blockDim.x)
    p[i] = byte_of(seed, i);
}
static __global__ void compare(const unsigned char* p, std::size_t bytes, std::uint64_t seed,
                               unsigned long long* wrong) {
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < bytes;
       i += std::size_t{gridDim.x} * blockDim.x)
    if (p[i] != byte_of(seed, i)) atomicAdd(wrong, 1ULL);
}

inline std::uint64_t next_seed() {
  static std::uint64_t seed = static_cast<std::uint64_t>(now() * 1e6) << 20;
  MPI_Bcast(&seed, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  return seed += std::uint64_t{1} << 32;
}

struct buffers {
  unsigned char* out = nullptr;
  unsigned char* in = nullptr;
  enum class memory { device, pool, managed };
  void allocate(memory of = memory::device) {
    for (unsigned char** p : {&out, &in})
      CHECK(of == memory::pool      ? cudaMallocAsync(p, room, nullptr)
            : of == memory::managed ? cudaMallocManaged(p, room)
                                    : cudaMalloc(p, room));
    CHECK(cudaDeviceSynchronize());
  }
  void prepare(std::size_t bytes, std::uint64_t seed) const {
    fill<<<512, 256>>>(out, bytes, seed);
    CHECK(cudaMemset(in, 0xa5, bytes));
    CHECK(cudaDeviceSynchronize());
  }
  void check(const unsigned char* where, std::size_t bytes, std::uint64_t seed, const char* what) const {
    static unsigned long long* wrong = nullptr;
    if (wrong == nullptr) CHECK(cudaMallocManaged(&wrong, sizeof *wrong));
    CHECK(cudaDeviceSynchronize());
    *wrong = 0;
    compare<<<512, 256>>>(where, bytes, seed, wrong);
    CHECK(cudaDeviceSynchronize());
    if (*wrong == 0) return;
    std::printf("%s of %zu bytes: %llu are wrong\n", what, bytes, *wrong);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
};
