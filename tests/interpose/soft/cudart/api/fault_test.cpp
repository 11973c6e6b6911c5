// Tests how a fault of a kernel affects the process.

#include <cstdint>
#include <cstdlib>

#include "check.h"
#include "kernels.h"

namespace {

cudaError_t store_at(std::uintptr_t address) {
  void* arguments[] = {&address};
  EXPECT_CUDA(cudaLaunchKernel(kernel_store(), 2, 3, arguments, 0, nullptr));
  return cudaDeviceSynchronize();
}

TEST(Faults, StayUntilAReset) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(store_at(0x1000), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_NE(told.find("0x1000"), std::string::npos) << told;
  EXPECT_NE(told.find("store"), std::string::npos) << told;
  void* p = nullptr;
  EXPECT_EQ(cudaMalloc(&p, 4), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaLaunchKernel(kernel_bounded(), 1, 1, nullptr, 0, nullptr), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
  EXPECT_CUDA(cudaDeviceReset());
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_CUDA(cudaLaunchKernel(kernel_bounded(), 1, 1, nullptr, 0, nullptr));
  EXPECT_CUDA(cudaDeviceSynchronize());
}

// Runs in a separate process, because each message is printed only once in a process.
TEST(Messages, OfErrorsThatProgramsOftenOverlook) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto overlook = [] {
    void* p = nullptr;
    for (int round = 0; round < 2; ++round) {
      cudaMalloc(&p, std::size_t{1} << 35);
      cudaMallocAsync(&p, std::size_t{1} << 35, nullptr);
      cudaDeviceGetNvSciSyncAttributes(nullptr, 0, 0);
      cudaGraphicsUnregisterResource(nullptr);
      cudaDestroyExternalMemory(nullptr);
    }
    std::_Exit(cudaGetLastError() == cudaErrorNotSupported ? 0 : 1);
  };
  EXPECT_EXIT(overlook(), testing::ExitedWithCode(0),
              "^hpe: cudaMalloc: cudaErrorMemoryAllocation: [^\n]*HPE_SOFT_MEMORY[^\n]*\n"
              "hpe: cudaDeviceGetNvSciSyncAttributes: cudaErrorNotSupported: soft devices do not support[^\n]*\n"
              "hpe: cudaGraphicsUnregisterResource: cudaErrorNotSupported: soft devices have no graphics[^\n]*\n"
              "hpe: cudaDestroyExternalMemory: cudaErrorNotSupported: soft devices have no external memory[^\n]*\n$");
}

// No list can have so many nodes, so the standard library throws an exception that is no error of hpe.
TEST(Messages, OfExceptionsThatHpeDoesNotExpect) {
  cudaGraph_t graph = nullptr;
  cudaGraphNode_t made = nullptr;
  const cudaGraphNode_t none = nullptr;
  ASSERT_CUDA(cudaGraphCreate(&graph, 0));
  testing::internal::CaptureStderr();
  EXPECT_FAILS(cudaGraphAddEmptyNode(&made, graph, &none, ~std::size_t{0}), cudaErrorUnknown);
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_EQ(told.find("hpe: cudaGraphAddEmptyNode: cudaErrorUnknown: "), 0U) << told;
  EXPECT_CUDA(cudaGraphDestroy(graph));
}

TEST(Faults, OfTraps) {
  EXPECT_CUDA(cudaLaunchKernel(kernel_trap(), 1, 1, nullptr, 0, nullptr));
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
}

TEST(Faults, OfMemoryThatIsFreed) {
  std::uintptr_t gone = 0;
  {
    const on_device<char> memory(std::size_t{8} << 20);
    gone = reinterpret_cast<std::uintptr_t>(memory.data());
    EXPECT_EQ(store_at(gone), cudaSuccess);
  }
  EXPECT_EQ(store_at(gone), cudaErrorIllegalAddress);
}

TEST(Faults, OfTheProgramsOwnMemory) {
  int ordinary = 0;
  EXPECT_EQ(store_at(reinterpret_cast<std::uintptr_t>(&ordinary)), cudaErrorIllegalAddress);
  EXPECT_EQ(ordinary, 0);
}

}  // namespace
