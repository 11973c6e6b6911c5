#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "check.h"

namespace {

TEST(Devices, AreAsManyAsHpeHas) {
  int count = 0;
  EXPECT_CUDA(cudaGetDeviceCount(&count));
  EXPECT_EQ(count, 2);  // the value in HPE_DEVICES for this test
  EXPECT_FAILS(cudaGetDeviceCount(nullptr), cudaErrorInvalidValue);
}

TEST(Devices, AreChosenByThread) {
  int device = -1;
  EXPECT_CUDA(cudaSetDevice(1));
  std::thread other([] {
    int mine = -1;
    EXPECT_CUDA(cudaGetDevice(&mine));
    EXPECT_EQ(mine, 0);
  });
  other.join();
  EXPECT_CUDA(cudaGetDevice(&device));
  EXPECT_EQ(device, 1);
  EXPECT_FAILS(cudaSetDevice(2), cudaErrorInvalidDevice);
  EXPECT_FAILS(cudaSetDevice(-1), cudaErrorInvalidDevice);
  EXPECT_CUDA(cudaGetDevice(&device));
  EXPECT_EQ(device, 1);
}

TEST(Devices, DescribeThemselvesTheSameInBothWays) {
  cudaDeviceProp p{};
  ASSERT_CUDA(cudaGetDeviceProperties(&p, 1));
  EXPECT_STREQ(p.name, "hpe soft device 1");
  EXPECT_GT(p.totalGlobalMem, 0U);
  EXPECT_EQ(p.warpSize, 32);
  const auto attribute = [](cudaDeviceAttr which) {
    int value = -1;
    EXPECT_CUDA(cudaDeviceGetAttribute(&value, which, 1));
    return value;
  };
  EXPECT_EQ(attribute(cudaDevAttrMaxThreadsPerBlock), p.maxThreadsPerBlock);
  EXPECT_EQ(attribute(cudaDevAttrComputeCapabilityMajor), p.major);
  EXPECT_EQ(attribute(cudaDevAttrMultiProcessorCount), p.multiProcessorCount);
  EXPECT_EQ(attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin), static_cast<int>(p.sharedMemPerBlockOptin));
  EXPECT_EQ(attribute(cudaDevAttrMaxGridDimY), 65535);
  EXPECT_EQ(attribute(cudaDevAttrCooperativeLaunch), 1);
  EXPECT_EQ(attribute(cudaDevAttrClusterLaunch), 1);
}

TEST(Devices, RefuseUnknownDevicesAndAttributes) {
  cudaDeviceProp p{};
  int value = 0;
  EXPECT_FAILS(cudaGetDeviceProperties(&p, 2), cudaErrorInvalidDevice);
  EXPECT_FAILS(cudaGetDeviceProperties(nullptr, 0), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaDeviceGetAttribute(&value, static_cast<cudaDeviceAttr>(0), 0), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaDeviceGetAttribute(&value, static_cast<cudaDeviceAttr>(9999), 0), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 7), cudaErrorInvalidDevice);
}

TEST(Devices, AreFoundByTheirBusId) {
  char text[16] = "";
  ASSERT_CUDA(cudaDeviceGetPCIBusId(text, sizeof text, 1));
  int device = -1;
  EXPECT_CUDA(cudaDeviceGetByPCIBusId(&device, text));
  EXPECT_EQ(device, 1);
  EXPECT_FAILS(cudaDeviceGetByPCIBusId(&device, "0000:55:00.0"), cudaErrorInvalidDevice);
  EXPECT_FAILS(cudaDeviceGetByPCIBusId(&device, "no id"), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaDeviceGetPCIBusId(text, 4, 1), cudaErrorInvalidValue);
}

TEST(Devices, KeepTheirSettingsUntilTheyAreReset) {
  std::size_t heap = 0;
  EXPECT_CUDA(cudaDeviceGetLimit(&heap, cudaLimitMallocHeapSize));
  EXPECT_EQ(heap, std::size_t{8} << 20);
  EXPECT_CUDA(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 12345678));
  EXPECT_CUDA(cudaDeviceGetLimit(&heap, cudaLimitMallocHeapSize));
  EXPECT_EQ(heap, 12345678U);
  EXPECT_FAILS(cudaDeviceGetLimit(&heap, static_cast<cudaLimit>(99)), cudaErrorUnsupportedLimit);
  EXPECT_CUDA(cudaSetDeviceFlags(cudaDeviceScheduleYield));
  unsigned flags = 0;
  EXPECT_CUDA(cudaGetDeviceFlags(&flags));
  EXPECT_EQ(flags & cudaDeviceScheduleMask, static_cast<unsigned>(cudaDeviceScheduleYield));
  EXPECT_CUDA(cudaDeviceReset());
  EXPECT_CUDA(cudaDeviceGetLimit(&heap, cudaLimitMallocHeapSize));
  EXPECT_EQ(heap, std::size_t{8} << 20);
}

TEST(Devices, ReachEachOtherOnceThatIsEnabled) {
  int can = -1;
  EXPECT_CUDA(cudaDeviceCanAccessPeer(&can, 0, 1));
  EXPECT_EQ(can, 1);
  EXPECT_CUDA(cudaDeviceCanAccessPeer(&can, 0, 0));
  EXPECT_EQ(can, 0);
  EXPECT_FAILS(cudaDeviceDisablePeerAccess(1), cudaErrorPeerAccessNotEnabled);
  EXPECT_CUDA(cudaDeviceEnablePeerAccess(1, 0));
  EXPECT_FAILS(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessAlreadyEnabled);
  EXPECT_FAILS(cudaDeviceEnablePeerAccess(0, 0), cudaErrorInvalidDevice);
  EXPECT_FAILS(cudaDeviceEnablePeerAccess(5, 0), cudaErrorInvalidDevice);
  EXPECT_CUDA(cudaDeviceDisablePeerAccess(1));
}

TEST(Devices, AreNotThereForChildrenOfFork) {
  const on_device<int> memory(1);
  const pid_t child = ::fork();
  if (child == 0) {
    int value = 0;
    const bool fails = cudaMemcpy(&value, memory.data(), 4, cudaMemcpyDeviceToHost) == cudaErrorInitializationError &&
                       cudaDeviceSynchronize() == cudaErrorInitializationError;
    std::exit(fails ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(Devices, AreChosenByWishedProperties) {
  cudaDeviceProp wish{};
  int device = -1;
  EXPECT_CUDA(cudaChooseDevice(&device, &wish));
  EXPECT_EQ(device, 0);
}

}  // namespace
