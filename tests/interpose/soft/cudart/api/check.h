#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <random>
#include <string>
#include <vector>

#define EXPECT_CUDA(call) EXPECT_EQ((call), cudaSuccess) << cudaGetErrorName(cudaPeekAtLastError())
#define ASSERT_CUDA(call) ASSERT_EQ((call), cudaSuccess) << cudaGetErrorName(cudaPeekAtLastError())

// Expects that a call fails with `code`, and that cudaGetLastError then returns this code once.
#define EXPECT_FAILS(call, code)                \
  do {                                          \
    EXPECT_EQ((call), (code));                  \
    EXPECT_EQ(cudaGetLastError(), (code));      \
    EXPECT_EQ(cudaGetLastError(), cudaSuccess); \
  } while (false)

// An array that is allocated by cudaMalloc and freed by the destructor.
template <class T>
class on_device {
 public:
  explicit on_device(std::size_t count) {
    EXPECT_CUDA(cudaMalloc(reinterpret_cast<void**>(&data_), count * sizeof(T)));
  }
  ~on_device() { cudaFree(data_); }
  on_device(const on_device&) = delete;
  on_device& operator=(const on_device&) = delete;
  [[nodiscard]] T* data() const { return data_; }

 private:
  T* data_ = nullptr;
};

// Makes random bytes; a test that fails prints the seed.
class random_bytes {
 public:
  random_bytes() : seed_(std::random_device{}()), engine_(seed_) {
    testing::Test::RecordProperty("seed", std::to_string(seed_));
  }
  [[nodiscard]] unsigned seed() const { return seed_; }
  std::size_t below(std::size_t bound) { return std::uniform_int_distribution<std::size_t>(0, bound - 1)(engine_); }
  std::vector<char> make(std::size_t count) {
    std::vector<char> bytes(count);
    for (char& each : bytes) each = static_cast<char>(below(256));
    return bytes;
  }

 private:
  unsigned seed_;
  std::mt19937 engine_;
};
