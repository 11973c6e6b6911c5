#include <sys/wait.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>

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
  EXPECT_CUDA(cudaSetDevice(0));
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

// Programs choose their code by these values.
TEST(Devices, ReportTheFeaturesThatTheyHave) {
  cudaDeviceProp p{};
  ASSERT_CUDA(cudaGetDeviceProperties(&p, 0));
  const std::pair<cudaDeviceAttr, int> expected[] = {
      {cudaDevAttrCanMapHostMemory, 1},
      {cudaDevAttrUnifiedAddressing, 1},
      {cudaDevAttrManagedMemory, 1},
      {cudaDevAttrConcurrentManagedAccess, 1},
      {cudaDevAttrMemoryPoolsSupported, 1},
      {cudaDevAttrMemoryPoolSupportedHandleTypes, cudaMemHandleTypePosixFileDescriptor},
      {cudaDevAttrHostRegisterSupported, 1},
      {cudaDevAttrIpcEventSupport, 1},
      {cudaDevAttrConcurrentKernels, 1},
      {cudaDevAttrStreamPrioritiesSupported, 1},
      {cudaDevAttrGlobalL1CacheSupported, 1},
      {cudaDevAttrLocalL1CacheSupported, 1},
      {cudaDevAttrAsyncEngineCount, 2},
      {cudaDevAttrGpuOverlap, 1},
      {cudaDevAttrIntegrated, 0},
      {cudaDevAttrEccEnabled, 0},
      {cudaDevAttrTccDriver, 0},
      {cudaDevAttrComputeMode, cudaComputeModeDefault},
      {cudaDevAttrMaxThreadsPerBlock, 1024},
      {cudaDevAttrMaxBlockDimX, 1024},
      {cudaDevAttrMaxBlockDimY, 1024},
      {cudaDevAttrMaxBlockDimZ, 64},
      {cudaDevAttrMaxGridDimX, INT_MAX},
      {cudaDevAttrMaxGridDimZ, 65535},
      {cudaDevAttrMaxThreadsPerMultiProcessor, 2048},
      {cudaDevAttrMaxBlocksPerMultiprocessor, 32},
      {cudaDevAttrMaxRegistersPerBlock, 65536},
      {cudaDevAttrMaxRegistersPerMultiprocessor, 65536},
      {cudaDevAttrMaxSharedMemoryPerBlock, 48 << 10},
      {cudaDevAttrMaxSharedMemoryPerBlockOptin, 227 << 10},
      {cudaDevAttrMaxSharedMemoryPerMultiprocessor, 228 << 10},
      {cudaDevAttrReservedSharedMemoryPerBlock, 1 << 10},
      {cudaDevAttrTotalConstantMemory, 64 << 10},
      {cudaDevAttrMaxPitch, INT_MAX},
      {cudaDevAttrTextureAlignment, 512},
      {cudaDevAttrTexturePitchAlignment, 32},
      {cudaDevAttrSurfaceAlignment, 512},
      {cudaDevAttrMaxTexture1DWidth, 32768},
      {cudaDevAttrMaxTexture2DWidth, 65536},
      {cudaDevAttrMaxTexture2DHeight, 65536},
      {cudaDevAttrMaxTexture3DWidth, 16384},
      {cudaDevAttrMaxTexture3DHeight, 16384},
      {cudaDevAttrMaxTexture3DDepth, 16384},
      {cudaDevAttrMaxTexture2DLinearWidth, 131072},
      {cudaDevAttrMaxTexture2DLinearHeight, 65000},
      {cudaDevAttrMaxTexture2DLinearPitch, 2097120},
      {cudaDevAttrMaxSurface1DWidth, 32768},
      {cudaDevAttrMaxSurface2DHeight, 65536},
      {cudaDevAttrMaxSurface3DDepth, 16384},
  };
  for (const auto& [which, value] : expected) {
    int told = -1;
    ASSERT_CUDA(cudaDeviceGetAttribute(&told, which, 0));
    EXPECT_EQ(told, value) << "attribute " << which;
  }
  int cache = 0;
  ASSERT_CUDA(cudaDeviceGetAttribute(&cache, cudaDevAttrL2CacheSize, 0));
  EXPECT_GE(cache, 1 << 20);
  EXPECT_EQ(p.canMapHostMemory, 1);
  for (int device = 0; device < 2; ++device) {
    cudaDeviceProp own{};
    ASSERT_CUDA(cudaGetDeviceProperties(&own, device));
    EXPECT_EQ(own.pciBusID, device);
    EXPECT_EQ(std::string(own.uuid.bytes, sizeof own.uuid.bytes), "hpe soft       " + std::to_string(device));
  }
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
  std::size_t launches = 0;
  EXPECT_CUDA(cudaDeviceGetLimit(&launches, cudaLimitDevRuntimePendingLaunchCount));
  EXPECT_EQ(launches, 2048U);
  EXPECT_CUDA(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 4096));
  EXPECT_CUDA(cudaDeviceGetLimit(&launches, cudaLimitDevRuntimePendingLaunchCount));
  EXPECT_EQ(launches, 4096U);
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

TEST(Devices, TellTheirLimitsAndSettingsAfterEachChange) {
  ASSERT_CUDA(cudaSetDevice(0));
  ASSERT_CUDA(cudaDeviceReset());
  const std::vector<std::pair<cudaLimit, std::size_t>> first{
      {cudaLimitStackSize, 1024},          {cudaLimitPrintfFifoSize, 7U << 20},
      {cudaLimitMallocHeapSize, 8U << 20}, {cudaLimitMaxL2FetchGranularity, 64},
      {cudaLimitPersistingL2CacheSize, 0}, {cudaLimitDevRuntimePendingLaunchCount, 2048}};
  for (const auto& [limit, expected] : first) {
    std::size_t told = 1;
    EXPECT_CUDA(cudaDeviceGetLimit(&told, limit));
    EXPECT_EQ(told, expected) << limit;
    EXPECT_CUDA(cudaDeviceSetLimit(limit, 128));
    EXPECT_CUDA(cudaDeviceGetLimit(&told, limit));
    EXPECT_EQ(told, limit == cudaLimitPersistingL2CacheSize ? 0U : 128U) << limit;
    EXPECT_FAILS(cudaDeviceGetLimit(nullptr, limit), cudaErrorInvalidValue);
  }
  EXPECT_FAILS(cudaDeviceSetLimit(cudaLimitMaxL2FetchGranularity, 129), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaDeviceSetLimit(static_cast<cudaLimit>(3), 1), cudaErrorUnsupportedLimit);
  std::size_t other = 0;
  EXPECT_CUDA(cudaSetDevice(1));  // the other device has its own limits
  EXPECT_CUDA(cudaDeviceGetLimit(&other, cudaLimitStackSize));
  EXPECT_EQ(other, 1024U);
  EXPECT_CUDA(cudaSetDevice(0));
  cudaFuncCache cache{};
  for (const int each : {3, 1, 0, 2}) {
    EXPECT_CUDA(cudaDeviceSetCacheConfig(static_cast<cudaFuncCache>(each)));
    EXPECT_CUDA(cudaDeviceGetCacheConfig(&cache));
    EXPECT_EQ(cache, each);
  }
  EXPECT_FAILS(cudaDeviceSetCacheConfig(static_cast<cudaFuncCache>(4)), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaDeviceSetCacheConfig(static_cast<cudaFuncCache>(-1)), cudaErrorInvalidValue);
  cudaSharedMemConfig banks{};
  EXPECT_CUDA(cudaDeviceSetSharedMemConfig(cudaSharedMemBankSizeEightByte));
  EXPECT_CUDA(cudaDeviceGetSharedMemConfig(&banks));
  EXPECT_EQ(banks, cudaSharedMemBankSizeFourByte);
  unsigned flags = 0;
  EXPECT_CUDA(cudaInitDevice(0, cudaDeviceScheduleBlockingSync, cudaInitDeviceFlagsAreValid));
  EXPECT_CUDA(cudaGetDeviceFlags(&flags));
  EXPECT_EQ(flags, unsigned{cudaDeviceScheduleBlockingSync} | cudaDeviceMapHost);
  EXPECT_CUDA(cudaInitDevice(0, cudaDeviceScheduleSpin, 0));
  EXPECT_CUDA(cudaGetDeviceFlags(&flags));
  EXPECT_EQ(flags & cudaDeviceScheduleMask, unsigned{cudaDeviceScheduleBlockingSync});
  EXPECT_FAILS(cudaInitDevice(2, 0, 0), cudaErrorInvalidDevice);
  EXPECT_FAILS(cudaSetDeviceFlags(1U << 20), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaGetDeviceFlags(nullptr), cudaErrorInvalidValue);
  EXPECT_CUDA(cudaDeviceReset());
  EXPECT_CUDA(cudaGetDeviceFlags(&flags));
  EXPECT_EQ(flags, unsigned{cudaDeviceMapHost});
  EXPECT_CUDA(cudaDeviceGetCacheConfig(&cache));
  EXPECT_EQ(cache, cudaFuncCachePreferNone);
  int list[] = {1, 0};
  EXPECT_CUDA(cudaSetValidDevices(list, 2));
  EXPECT_CUDA(cudaSetValidDevices(nullptr, 0));
  EXPECT_FAILS(cudaSetValidDevices(nullptr, 1), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaSetValidDevices(list, -1), cudaErrorInvalidValue);
  list[1] = 2;
  EXPECT_FAILS(cudaSetValidDevices(list, 2), cudaErrorInvalidDevice);
  EXPECT_CUDA(cudaSetValidDevices(list, 1));
}

TEST(Devices, TellWhatTheyAreForEachOther) {
  ASSERT_CUDA(cudaSetDevice(0));
  int value = -1;
  EXPECT_CUDA(cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrAccessSupported, 0, 1));
  EXPECT_EQ(value, 1);
  EXPECT_CUDA(cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrNativeAtomicSupported, 1, 0));
  EXPECT_EQ(value, 1);
  EXPECT_CUDA(cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrPerformanceRank, 0, 1));
  EXPECT_EQ(value, 0);
  value = -1;
  EXPECT_CUDA(cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrCudaArrayAccessSupported, 0, 1));
  EXPECT_EQ(value, 0);
  EXPECT_FAILS(cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrAccessSupported, 1, 1), cudaErrorInvalidDevice);
  EXPECT_FAILS(cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrAccessSupported, 0, 2), cudaErrorInvalidDevice);
  EXPECT_FAILS(cudaDeviceGetP2PAttribute(&value, static_cast<cudaDeviceP2PAttr>(99), 0, 1), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaDeviceGetP2PAttribute(nullptr, cudaDevP2PAttrAccessSupported, 0, 1), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaDeviceCanAccessPeer(nullptr, 0, 1), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaDeviceCanAccessPeer(&value, 0, 2), cudaErrorInvalidDevice);
  EXPECT_FAILS(cudaDeviceEnablePeerAccess(1, 1), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaDeviceDisablePeerAccess(2), cudaErrorInvalidDevice);
  // Peer access from device 0 to device 1 does not allow access from device 1 to device 0.
  EXPECT_CUDA(cudaDeviceEnablePeerAccess(1, 0));
  EXPECT_CUDA(cudaSetDevice(1));
  EXPECT_FAILS(cudaDeviceDisablePeerAccess(0), cudaErrorPeerAccessNotEnabled);
  EXPECT_CUDA(cudaDeviceEnablePeerAccess(0, 0));
  EXPECT_CUDA(cudaDeviceReset());  // ends only the peer access of this device
  EXPECT_FAILS(cudaDeviceDisablePeerAccess(0), cudaErrorPeerAccessNotEnabled);
  EXPECT_CUDA(cudaSetDevice(0));
  EXPECT_CUDA(cudaDeviceDisablePeerAccess(1));
}

TEST(Devices, HaveBusIdsInSeveralForms) {
  int device = -1;
  for (const char* const each : {"0000:01:00.0", "0000:01:00", "01:00.0", "1:0", "0:1:0"}) {
    device = -1;
    EXPECT_CUDA(cudaDeviceGetByPCIBusId(&device, each));
    EXPECT_EQ(device, 1) << each;
  }
  for (const char* const each : {"0001:01:00.0", "0000:01:01.0", "0000:02:00.0", "02:00.0"})
    EXPECT_FAILS(cudaDeviceGetByPCIBusId(&device, each), cudaErrorInvalidDevice);
  EXPECT_FAILS(cudaDeviceGetByPCIBusId(nullptr, "01:00.0"), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaDeviceGetByPCIBusId(&device, nullptr), cudaErrorInvalidValue);
  char text[14] = "";
  EXPECT_CUDA(cudaDeviceGetPCIBusId(text, 13, 1));  // 12 characters and a zero byte
  EXPECT_STREQ(text, "0000:01:00.0");
  EXPECT_FAILS(cudaDeviceGetPCIBusId(text, 12, 1), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaDeviceGetPCIBusId(nullptr, 13, 1), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaDeviceGetPCIBusId(text, 13, 2), cudaErrorInvalidDevice);
}

TEST(Devices, AreChosenByWhatTheyHaveAtLeast) {
  cudaDeviceProp wish{};
  ASSERT_CUDA(cudaGetDeviceProperties(&wish, 1));
  int device = -1;
  EXPECT_CUDA(cudaChooseDevice(&device, &wish));  // both devices fit equally well, so the first device is chosen
  EXPECT_EQ(device, 0);
  wish.major = 99;
  EXPECT_CUDA(cudaChooseDevice(&device, &wish));
  EXPECT_EQ(device, 0);
  EXPECT_FAILS(cudaChooseDevice(&device, nullptr), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaChooseDevice(nullptr, &wish), cudaErrorInvalidValue);
}

TEST(Devices, HaveTheWidthsThatTexturesNeed) {
  cudaDeviceProp p{};
  ASSERT_CUDA(cudaGetDeviceProperties(&p, 0));
  const auto attribute = [](cudaDeviceAttr which) {
    int value = -1;
    EXPECT_CUDA(cudaDeviceGetAttribute(&value, which, 0));
    return value;
  };
  std::size_t width = 0;
  const cudaChannelFormatDesc format{32, 0, 0, 0, cudaChannelFormatKindFloat};
  EXPECT_CUDA(cudaDeviceGetTexture1DLinearMaxWidth(&width, &format, 0));
  EXPECT_EQ(width, static_cast<std::size_t>(attribute(cudaDevAttrMaxTexture1DLinearWidth)));
  EXPECT_GT(width, 0U);
  EXPECT_FAILS(cudaDeviceGetTexture1DLinearMaxWidth(nullptr, &format, 0), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaDeviceGetTexture1DLinearMaxWidth(&width, nullptr, 0), cudaErrorInvalidValue);
  const cudaChannelFormatDesc none{};
  EXPECT_FAILS(cudaDeviceGetTexture1DLinearMaxWidth(&width, &none, 0), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaDeviceGetTexture1DLinearMaxWidth(&width, &format, 2), cudaErrorInvalidDevice);
  EXPECT_EQ(std::vector<int>(p.maxTexture3D, p.maxTexture3D + 3), std::vector<int>(3, 16384));
  EXPECT_EQ(std::vector<int>(p.maxSurface3D, p.maxSurface3D + 3), std::vector<int>(3, 16384));
  EXPECT_EQ(std::vector<int>(p.maxTexture2D, p.maxTexture2D + 2), std::vector<int>(2, 65536));
  EXPECT_EQ(std::vector<int>(p.maxTexture2DLinear, p.maxTexture2DLinear + 3),
            (std::vector<int>{131072, 65000, 2097120}));
  EXPECT_EQ(std::vector<int>(p.maxThreadsDim, p.maxThreadsDim + 3), (std::vector<int>{1024, 1024, 64}));
  EXPECT_EQ(std::vector<int>(p.maxGridSize, p.maxGridSize + 3), (std::vector<int>{INT_MAX, 65535, 65535}));
  EXPECT_EQ(p.sharedMemPerBlock, 48U << 10);
  EXPECT_EQ(p.sharedMemPerBlockOptin, 227U << 10);
  EXPECT_EQ(p.sharedMemPerMultiprocessor, 228U << 10);
  EXPECT_EQ(p.reservedSharedMemPerBlock, 1U << 10);
  EXPECT_EQ(p.totalConstMem, 64U << 10);
  EXPECT_EQ(p.maxThreadsPerMultiProcessor, 2048);
  EXPECT_EQ(p.regsPerBlock, 65536);
  EXPECT_EQ(p.textureAlignment, 512U);
  EXPECT_EQ(std::string(p.uuid.bytes, 16), "hpe soft       0");
  // CUDA 13 removed these properties; they are still attributes.
  EXPECT_EQ(attribute(cudaDevAttrClockRate), 1'000'000);
  EXPECT_EQ(attribute(cudaDevAttrComputeMode), cudaComputeModeDefault);
  EXPECT_EQ(attribute(cudaDevAttrManagedMemory), 1);
  EXPECT_EQ(attribute(cudaDevAttrConcurrentManagedAccess), 1);
  EXPECT_EQ(attribute(cudaDevAttrPageableMemoryAccess), 0);
  EXPECT_EQ(attribute(cudaDevAttrIntegrated), 0);
}

}  // namespace
