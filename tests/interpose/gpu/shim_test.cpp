// The shim with the stand-in as the driver: forwarding and exports. This program is linked like a CUDA program, but
// with the shim in place of the driver.
#include <cuda.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <thread>

#include "tests/interpose/gpu/driver_under_test.h"

namespace {

bool in_shim(void* function) {
  Dl_info about{};
  return ::dladdr(function, &about) != 0 && std::string(about.dli_fname).ends_with("/hpe/cuda/libcuda.so.1");
}

TEST(Shim, ForwardsCallsAndResults) {
  const unsigned before = stand_in::calls("cuCtxDestroy_v2");
  int version = 0;
  EXPECT_EQ(cuDriverGetVersion(&version), CUDA_SUCCESS);
  EXPECT_EQ(version, 13000);
  CUdevice device = -1;
  EXPECT_EQ(cuDeviceGet(&device, 7), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(device, 7);
  EXPECT_EQ(cuCtxDestroy(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(stand_in::calls("cuCtxDestroy_v2"), before + 1);
}

TEST(Shim, ForwardsArgumentsOnTheStack) {
  // cuLaunchKernel has eleven arguments; the stand-in reads the tenth.
  static std::uint64_t seen = 0;
  static const stand_in::kernel kernel{[](const std::uint64_t* p) { seen = p[0] * 100 + p[1]; }, 2};
  std::uint64_t one = 7;
  std::uint64_t two = 9;
  void* parameters[] = {&one, &two};
  auto* const function = reinterpret_cast<CUfunction>(const_cast<stand_in::kernel*>(&kernel));
  ASSERT_NO_FATAL_FAILURE(stand_in::enter_device_0());
  ASSERT_EQ(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(seen, 709U);
  EXPECT_EQ(cuDevicePrimaryCtxRelease(0), CUDA_SUCCESS);
}

TEST(Shim, FirstCallsOfManyThreadsAtOnce) {
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int t = 0; t < 16; ++t)
    threads.emplace_back([&] {
      int count = 0;
      good += cuDeviceGetCount(&count) == CUDA_SUCCESS && count == 2 ? 1 : 0;
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(good, 16);
}

TEST(Shim, HasEveryNameOfTheToolkitsStub) {
  std::set<std::string> ours;
#define HPE_DRIVER_ENTRY(name) ours.insert(#name);
#include "interpose/gpu/shim/driver_entries.def"
#undef HPE_DRIVER_ENTRY
  std::ifstream names(HPE_TEST_STUB_NAMES);
  std::string name;
  unsigned count = 0;
  for (; names >> name; ++count)
    EXPECT_TRUE(ours.contains(name)) << name << " is in the toolkit's stub and not in driver_entries.def";
  EXPECT_GT(count, 600U);
  void* const own = ::dlopen(nullptr, RTLD_NOW);
  for (const std::string& entry : ours) EXPECT_TRUE(in_shim(::dlsym(own, entry.c_str()))) << entry;
}

}  // namespace
