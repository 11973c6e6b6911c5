// The words in the parameters of launches, and the sizes of parameters that hpe keeps. The entries of the driver are
// functions of this test.
#include "interpose/gpu/work/launch_parameters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "tests/interpose/gpu/driver_under_test.h"

namespace {

using hpe::cuda_hooks::kernel_launch;
using hpe::cuda_hooks::parameter_sizes;
using hpe::cuda_hooks::words_of;

unsigned questions = 0;
CUresult end = CUDA_ERROR_INVALID_VALUE;  // what the driver returns behind the last parameter
std::array<std::size_t, 3> sizes{8, 4, 24};
std::size_t count = 3;

CUresult CUDAAPI size_of_function(CUfunction /*function*/, std::size_t index, std::size_t* offset, std::size_t* bytes) {
  ++questions;
  if (index >= count) return end;
  *offset = 0;
  *bytes = sizes.at(index);
  return CUDA_SUCCESS;
}
CUresult CUDAAPI size_of_kernel(CUkernel /*kernel*/, std::size_t /*index*/, std::size_t* /*offset*/,
                                std::size_t* /*bytes*/) {
  return CUDA_ERROR_INVALID_HANDLE;
}

class LaunchScope : public ::testing::Test {
 protected:
  LaunchScope() {
    parameter_sizes::of_process().forget();
    cu_.cuFuncGetParamInfo = size_of_function;
    cu_.cuKernelGetParamInfo = size_of_kernel;
    questions = 0;
    end = CUDA_ERROR_INVALID_VALUE;
    count = 3;
  }
  [[nodiscard]] std::optional<std::vector<CUdeviceptr>> words() {
    return words_of(cu_, {reinterpret_cast<CUfunction>(&function_), parameters_.data(), nullptr});
  }

  hpe::device::cuda::driver cu_;
  int function_ = 0;
  std::uint64_t address_ = 0x1000;
  std::uint32_t number_ = 7;
  std::array<std::uint64_t, 3> structure_{0x2000, 0x3000, 5};
  std::array<void*, 3> parameters_{&address_, &number_, &structure_};
};

TEST_F(LaunchScope, HasTheWordsOfParametersAndOfTheirMembers) {
  const auto found = words();
  ASSERT_TRUE(found);
  for (const CUdeviceptr word : {0x1000, 0x2000, 0x3000})
    EXPECT_NE(std::ranges::find(*found, word), found->end()) << word;
  EXPECT_EQ(std::ranges::find(*found, 7), found->end()) << "a number of 4 bytes";
}

TEST_F(LaunchScope, AsksTheDriverOncePerKernel) {
  const auto first = words();
  const unsigned asked = questions;
  EXPECT_EQ(words(), first);
  EXPECT_EQ(questions, asked);
  // A new kernel has the handle of a kernel that was unloaded.
  parameter_sizes::of_process().forget();
  count = 1;
  const auto second = words();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->size(), 1U);
}

TEST_F(LaunchScope, DoesNotKeepSizesAfterAnError) {
  count = 1;
  end = CUDA_ERROR_OUT_OF_MEMORY;
  ASSERT_TRUE(words());
  count = 3;
  end = CUDA_ERROR_INVALID_VALUE;
  const auto found = words();
  ASSERT_TRUE(found);
  EXPECT_NE(std::ranges::find(*found, 0x3000), found->end());
}

TEST_F(LaunchScope, IsUnknownIfTheDriverReportsNoSize) {
  count = 0;
  EXPECT_FALSE(words());
  count = 3;
  EXPECT_TRUE(words());
}

}  // namespace
