#pragma once

// Support for the programs in this folder. They are plain CUDA programs that do not use hpe itself: each program prints
// results that depend only on its input, and runs with and without `hpe run` (scripts/gpu-check --group interpose).

#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                                                                \
  do {                                                                                             \
    const cudaError_t check_result = (call);                                                       \
    if (check_result != cudaSuccess) {                                                             \
      std::printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(check_result)); \
      std::exit(1);                                                                                \
    }                                                                                              \
  } while (false)

// Returns the FNV-1a hash of the data, computed over 8-byte words.
inline std::uint64_t digest(const void* data, std::size_t bytes) {
  const auto* words = static_cast<const std::uint64_t*>(data);
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (std::size_t i = 0; i < bytes / sizeof *words; ++i) hash = (hash ^ words[i]) * 0x100000001b3ULL;
  return hash;
}

// Generates a sequence of numbers that depends only on the seed.
class numbers {
 public:
  explicit numbers(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15ULL;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  std::uint64_t below(std::uint64_t n) { return next() % n; }

 private:
  std::uint64_t state_;
};
