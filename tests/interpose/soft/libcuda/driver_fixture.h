#pragma once

/// Common code of the tests of hpe's driver library.

#include <cuda.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <iostream>
#include <random>
#include <vector>

namespace hpe::libcuda::test {

class Driver : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(cuInit(0), CUDA_SUCCESS); }
};

inline CUcontext retained(int device) {
  CUcontext context = nullptr;
  EXPECT_EQ(cuDevicePrimaryCtxRetain(&context, device), CUDA_SUCCESS);
  return context;
}

inline CUcontext current() {
  CUcontext context = nullptr;
  EXPECT_EQ(cuCtxGetCurrent(&context), CUDA_SUCCESS);
  return context;
}

#define EXPECT_GOOD(call) EXPECT_EQ((call), CUDA_SUCCESS)
#define ASSERT_GOOD(call) ASSERT_EQ((call), CUDA_SUCCESS)
#define EXPECT_INVALID(call) EXPECT_EQ((call), CUDA_ERROR_INVALID_VALUE)

/// A fixture with a current context of device 0, and with random numbers. A test that fails prints the seed.
class Queries : public Driver {
 protected:
  void SetUp() override {
    Driver::SetUp();
    ASSERT_GOOD(cuCtxSetCurrent(retained(0)));
  }
  void TearDown() override {
    if (HasFailure()) std::cout << "the seed was " << seed_ << '\n';
    EXPECT_GOOD(cuCtxSetCurrent(nullptr));
    EXPECT_GOOD(cuDevicePrimaryCtxRelease(0));
  }

  std::size_t below(std::size_t bound) { return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random_); }

  std::vector<unsigned char> bytes(std::size_t count) {
    std::vector<unsigned char> made(count);
    for (auto& each : made) each = static_cast<unsigned char>(random_());
    return made;
  }

  const unsigned seed_ = std::random_device{}();
  std::mt19937 random_{seed_};
};

}  // namespace hpe::libcuda::test
