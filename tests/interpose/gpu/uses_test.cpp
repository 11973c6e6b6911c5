// Uses of device memory that hpe cannot make coherent with CPU code are reported once for each kind and region.
#include <cuda.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/interpose/gpu/driver_under_test.h"

namespace {

class Uses : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(stand_in::enter_device_0());
    ASSERT_EQ(cuMemAlloc(&device, bytes), CUDA_SUCCESS);
  }
  void TearDown() override { EXPECT_EQ(cuMemFree(device), CUDA_SUCCESS); }

  void touch() const { ++*reinterpret_cast<std::uint64_t*>(device); }

  /// Runs program() and returns the text that it has logged.
  template <class Program>
  static std::string told(Program program) {
    testing::internal::CaptureStderr();
    program();
    return testing::internal::GetCapturedStderr();
  }

  static constexpr std::size_t bytes = std::size_t{3} << 20;
  CUdeviceptr device = 0;
};

TEST_F(Uses, SharedWithAnotherProcess) {
  CUipcMemHandle handle{};
  EXPECT_EQ(told([&] { EXPECT_EQ(cuIpcGetMemHandle(&handle, device), CUDA_SUCCESS); }), "")
      << "the host has not used the memory";
  const std::string first = told([&] { touch(); });
  EXPECT_NE(first.find("other processes"), std::string::npos) << first;
  // The message names the source line if there is debug information, otherwise the program.
  const bool placed =
      first.find("uses_test.cpp:") != std::string::npos || first.find("interpose-tests") != std::string::npos;
  EXPECT_TRUE(placed) << "the message names no place: " << first;
  EXPECT_EQ(told([&] {
              touch();
              EXPECT_EQ(cuIpcGetMemHandle(&handle, device + 8), CUDA_SUCCESS);
            }),
            "")
      << "once is enough";
}

TEST_F(Uses, SharedAfterATouch) {
  CUipcMemHandle handle{};
  EXPECT_EQ(told([&] { touch(); }), "");
  const std::string text = told([&] { EXPECT_EQ(cuIpcGetMemHandle(&handle, device), CUDA_SUCCESS); });
  EXPECT_NE(text.find("other processes"), std::string::npos) << text;
}

TEST_F(Uses, OpenedFromElsewhere) {
  CUdeviceptr opened = 0;
  ASSERT_EQ(cuIpcOpenMemHandle(&opened, {}, 0), CUDA_SUCCESS);
  EXPECT_NE(told([&] { (void)*reinterpret_cast<volatile int*>(opened); }).find("another process"), std::string::npos);
  EXPECT_EQ(cuMemFree(opened), CUDA_SUCCESS);
  CUDA_EXTERNAL_MEMORY_BUFFER_DESC what{};
  what.size = bytes;
  ASSERT_EQ(cuExternalMemoryGetMappedBuffer(&opened, nullptr, &what), CUDA_SUCCESS);
  EXPECT_NE(told([&] { (void)*reinterpret_cast<volatile int*>(opened); }).find("another API"), std::string::npos);
  EXPECT_EQ(cuMemFree(opened), CUDA_SUCCESS);
}

TEST_F(Uses, SharedByTheHandleOfAMapping) {
  int file = 0;
  CUmemGenericAllocationHandle handle = 5;
  ASSERT_EQ(cuMemMap(device, bytes, 0, handle, 0), CUDA_SUCCESS);
  EXPECT_EQ(told([&] { touch(); }), "");
  const std::string exported = told([&] {
    EXPECT_EQ(cuMemExportToShareableHandle(&file, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0), CUDA_SUCCESS);
  });
  EXPECT_NE(exported.find("other processes"), std::string::npos) << exported;
  EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
  CUdeviceptr mapped = 0;
  ASSERT_EQ(cuMemAlloc(&mapped, bytes), CUDA_SUCCESS);
  ASSERT_EQ(cuMemImportFromShareableHandle(&handle, &file, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR), CUDA_SUCCESS);
  // If the memory begins in the last page touched above, hpe reports the use when the memory is mapped, otherwise when
  // CPU code touches the memory.
  const std::string opened = told([&] {
    EXPECT_EQ(cuMemMap(mapped, bytes, 0, handle, 0), CUDA_SUCCESS);
    (void)*reinterpret_cast<volatile int*>(mapped);
  });
  EXPECT_NE(opened.find("another process"), std::string::npos) << opened;
  EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree(mapped), CUDA_SUCCESS);
}

TEST_F(Uses, SharedMemoryBehindItIsOfNoConcern) {
  // The stand-in places small allocations directly one after the other, unless it has to begin another block.
  constexpr std::size_t little = std::size_t{64} << 10;
  CUdeviceptr all[3]{};
  for (CUdeviceptr& each : all) ASSERT_EQ(cuMemAlloc(&each, little), CUDA_SUCCESS);
  const CUdeviceptr* const first = all[1] == all[0] + little ? &all[0] : &all[1];
  ASSERT_EQ(first[1], first[0] + little);
  CUipcMemHandle handle{};
  EXPECT_EQ(cuIpcGetMemHandle(&handle, first[1]), CUDA_SUCCESS);
  EXPECT_EQ(told([&] { ++*reinterpret_cast<std::uint64_t*>(first[0]); }), "");
  for (const CUdeviceptr each : all) EXPECT_EQ(cuMemFree(each), CUDA_SUCCESS);
}

TEST_F(Uses, AwaitedByAStream) {
  EXPECT_EQ(told([&] { EXPECT_EQ(cuStreamWaitValue32(nullptr, device, 1, 0), CUDA_SUCCESS); }), "");
  touch();
  const std::string text = told([&] { EXPECT_EQ(cuStreamWaitValue32(nullptr, device, 1, 0), CUDA_SUCCESS); });
  EXPECT_NE(text.find("cuStreamWriteValue32"), std::string::npos) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
  CUstreamBatchMemOpParams wait{};
  wait.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
  wait.waitValue.address = device;
  EXPECT_EQ(told([&] { EXPECT_EQ(cuStreamBatchMemOp(nullptr, 1, &wait, 0), CUDA_SUCCESS); }), "") << "told already";
}

TEST_F(Uses, AwaitedInABatch) {
  touch();
  CUstreamBatchMemOpParams waits[2]{};
  waits[0].operation = CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES;
  waits[1].operation = CU_STREAM_MEM_OP_WAIT_VALUE_64;
  waits[1].waitValue.address = device;
  const std::string text = told([&] { EXPECT_EQ(cuStreamBatchMemOp(nullptr, 2, waits, 0), CUDA_SUCCESS); });
  EXPECT_NE(text.find("cuStreamWriteValue32"), std::string::npos) << text;
}

TEST_F(Uses, OtherMemoryAtTheSameAddressIsReportedAgain) {
  CUipcMemHandle handle{};
  ASSERT_EQ(cuIpcGetMemHandle(&handle, device), CUDA_SUCCESS);
  ASSERT_EQ(cuMemFree(device), CUDA_SUCCESS);
  ASSERT_EQ(cuMemAlloc(&device, bytes), CUDA_SUCCESS);
  EXPECT_EQ(told([&] { touch(); }), "");
}

}  // namespace
