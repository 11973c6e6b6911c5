#pragma once

/// What the tests of hpe's driver library share.

#include <cuda.h>
#include <gtest/gtest.h>

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

}  // namespace hpe::libcuda::test
