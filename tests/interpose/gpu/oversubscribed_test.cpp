// A program that uses more memory than its device has (HPE_OVERSUBSCRIBE=on, HPE_DEVICE_MEMORY=16M): the streams and
// events that hpe creates for the program's streams, and calls during which allocations of host memory fail.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <thread>
#include <vector>

#include "tests/interpose/gpu/driver_under_test.h"
#include "tests/interpose/gpu/failing_memory.h"

namespace {

constexpr std::size_t mebibyte = std::size_t{1} << 20, bytes = 2 * mebibyte;

class Oversubscribed : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(stand_in::enter_device_0());
    ASSERT_EQ(cuMemAlloc(&array_, bytes), CUDA_SUCCESS);
    free_ = free_memory();
    ASSERT_LE(free_, 16 * mebibyte) << "the test needs hpe's memory in place of the driver's";
  }
  void TearDown() override { EXPECT_EQ(cuMemFree(array_), CUDA_SUCCESS); }

  static std::size_t free_memory() {
    std::size_t free = 0, total = 0;
    EXPECT_EQ(cuMemGetInfo(&free, &total), CUDA_SUCCESS);
    return free;
  }
  // Whether the driver has device memory at an address.
  static bool is_mapped(CUdeviceptr at) {
    int device = -1;
    const auto ask = stand_in::find<CUresult(void*, CUpointer_attribute, CUdeviceptr)>("cuPointerGetAttribute");
    return ask(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, at) == CUDA_SUCCESS && device == 0;
  }
  void work_on(CUstream stream) const {
    ASSERT_EQ(cuMemsetD32Async(array_, 1, 1024, stream), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  }

  CUdeviceptr array_ = 0;
  std::size_t free_ = 0;
};

TEST_F(Oversubscribed, EventsAreUsedAgainAndFewQueriesShowThatTheyAreReached) {
  CUstream stream = nullptr;
  ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  // A stream of hpe creates some hundred events, and then reuses them.
  for (int n = 0; n < 1000; ++n) ASSERT_NO_FATAL_FAILURE(work_on(stream));
  const unsigned made = stand_in::calls("cuEventCreate"), asked = stand_in::calls("cuEventQuery");
  for (int n = 0; n < 1000; ++n) ASSERT_NO_FATAL_FAILURE(work_on(stream));
  EXPECT_LE(stand_in::calls("cuEventCreate") - made, 10U);
  EXPECT_LE(stand_in::calls("cuEventQuery") - asked, 100U);
  EXPECT_EQ(cuStreamDestroy(stream), CUDA_SUCCESS);
}

TEST_F(Oversubscribed, WorkWithDataInPlaceNeedsNoEvent) {
  CUstream stream = nullptr;
  ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_NO_FATAL_FAILURE(work_on(stream));
  const unsigned recorded = stand_in::calls("cuEventRecord"), awaited = stand_in::calls("cuStreamWaitEvent"),
                 asked = stand_in::calls("cuMemGetInfo");
  for (int n = 0; n < 10; ++n) ASSERT_NO_FATAL_FAILURE(work_on(stream));
  EXPECT_EQ(stand_in::calls("cuEventRecord"), recorded);
  EXPECT_EQ(stand_in::calls("cuStreamWaitEvent"), awaited);
  // Such a query takes 50 us, and longer while another thread maps memory.
  EXPECT_EQ(stand_in::calls("cuMemGetInfo"), asked);
  EXPECT_EQ(cuStreamDestroy(stream), CUDA_SUCCESS);
}

// As long as all data is in device memory, launches cost no calls of the driver but their own. Later launches bring in
// data that has left device memory.
TEST_F(Oversubscribed, LaunchesNeedNoEventsUntilDeviceMemoryIsShort) {
  const char* const code = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry raises(.param .u64 raises_0) {
  .reg .b32 %r<3>; .reg .b64 %d<2>;
  ld.param.u64 %d0, [raises_0];
  ld.global.u32 %r1, [%d0]; add.u32 %r2, %r1, 1; st.global.u32 [%d0], %r2;
  ret;
}
)";
  CUmodule module = nullptr;
  CUfunction raises = nullptr;
  ASSERT_EQ(cuModuleLoadData(&module, code), CUDA_SUCCESS);
  ASSERT_EQ(cuModuleGetFunction(&raises, module, "raises"), CUDA_SUCCESS);
  void* parameters[] = {&array_};
  unsigned launched = 0;
  const auto launch = [&](int launches) {
    for (int n = 0; n < launches; ++n, ++launched)
      ASSERT_EQ(cuLaunchKernel(raises, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr), CUDA_SUCCESS);
  };
  ASSERT_EQ(cuMemsetD32(array_, 0, bytes / 4), CUDA_SUCCESS);
  ASSERT_NO_FATAL_FAILURE(launch(3));
  ASSERT_EQ(cuStreamSynchronize(nullptr), CUDA_SUCCESS);  // ends the command that contains the memset
  ASSERT_NO_FATAL_FAILURE(launch(1));
  const auto calls = [] {
    unsigned sum = 0;
    for (const char* const entry : {"cuEventRecord", "cuEventQuery", "cuStreamWaitEvent", "cuStreamIsCapturing"})
      sum += stand_in::calls(entry);
    return sum;
  };
  const unsigned before = calls();
  for (int n = 0; n < 10; ++n) {
    ASSERT_NO_FATAL_FAILURE(launch(2));
    ASSERT_EQ(cuStreamSynchronize(nullptr), CUDA_SUCCESS);
  }
  EXPECT_EQ(calls(), before);
  std::vector<CUdeviceptr> more(10);
  for (CUdeviceptr& each : more) {
    ASSERT_NO_FATAL_FAILURE(launch(2));
    ASSERT_EQ(cuMemAlloc(&each, bytes), CUDA_SUCCESS);
    ASSERT_EQ(cuMemsetD32Async(each, 7, bytes / 4, nullptr), CUDA_SUCCESS);
  }
  for (const CUdeviceptr each : more) {
    ASSERT_NO_FATAL_FAILURE(launch(1));
    ASSERT_EQ(cuMemsetD32Async(each, 8, bytes / 4, nullptr), CUDA_SUCCESS);
  }
  unsigned sum = 0;
  ASSERT_EQ(cuMemcpyDtoH(&sum, array_, sizeof sum), CUDA_SUCCESS);
  EXPECT_EQ(sum, launched);
  for (const CUdeviceptr each : more) EXPECT_EQ(cuMemFree(each), CUDA_SUCCESS);
  EXPECT_EQ(cuModuleUnload(module), CUDA_SUCCESS);
}

// The program destroys its first stream and makes a second one, while the stream of hpe that represents the first
// stream still has work.
TEST_F(Oversubscribed, WorkOfStreamsThatHaveEndedIsWaitedFor) {
  CUdeviceptr other = 0;
  ASSERT_EQ(cuMemAlloc(&other, bytes), CUDA_SUCCESS);
  CUstream first = nullptr, second = nullptr;
  ASSERT_EQ(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_NO_FATAL_FAILURE(work_on(first));
  stand_in::pause(true);
  ASSERT_EQ(cuMemsetD32Async(other, 1, bytes / 4, first), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamDestroy(first), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(cuMemsetD32Async(array_, 2, bytes / 4, second), CUDA_SUCCESS);
  std::atomic<bool> goes_on{false};
  const auto resume = std::async(std::launch::async, [&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    goes_on = true;
    stand_in::pause(false);
  });
  EXPECT_EQ(cuMemFree(other), CUDA_SUCCESS);
  EXPECT_TRUE(goes_on) << "queued work uses the memory";
  std::vector<unsigned> there(bytes / 4);
  ASSERT_EQ(cuStreamSynchronize(second), CUDA_SUCCESS);
  ASSERT_EQ(cuMemcpyDtoH(there.data(), array_, bytes), CUDA_SUCCESS);
  EXPECT_EQ(there, std::vector<unsigned>(bytes / 4, 2));
  EXPECT_EQ(cuStreamDestroy(second), CUDA_SUCCESS);
}

// Some kernels read a little past the end of an array and ignore the value. With the driver's own memory, such a read
// does not fail. The device memory of hpe (16 MiB) holds eight of the arrays.
TEST_F(Oversubscribed, ThereIsMemoryBehindEachArrayWhetherItIsInDeviceMemoryOrNot) {
  std::vector<CUdeviceptr> arrays(12);
  for (CUdeviceptr& made : arrays) ASSERT_EQ(cuMemAlloc(&made, bytes), CUDA_SUCCESS);
  for (int round = 0; round < 2; ++round) {
    for (const CUdeviceptr each : arrays) {
      ASSERT_EQ(cuMemsetD32(each, 1, bytes / 4), CUDA_SUCCESS);
      for (const CUdeviceptr at : arrays) EXPECT_TRUE(is_mapped(at + bytes) && is_mapped(at + bytes + mebibyte - 4));
    }
  }
  for (const CUdeviceptr each : arrays) EXPECT_EQ(cuMemFree(each), CUDA_SUCCESS);
}

// A driver maps memory slowly while a copy to the device runs, so hpe maps the memory for several arrays first.
TEST_F(Oversubscribed, TheMemoryForSeveralUploadsIsMappedBeforeTheFirstUpload) {
  std::vector<CUdeviceptr> arrays(10);
  for (CUdeviceptr& made : arrays) ASSERT_EQ(cuMemAlloc(&made, bytes), CUDA_SUCCESS);
  for (const CUdeviceptr each : arrays) ASSERT_EQ(cuMemsetD32(each, 1, bytes / 4), CUDA_SUCCESS);
  // The first two arrays are in host memory. Now there is free memory for them.
  for (; arrays.size() > 6; arrays.pop_back()) ASSERT_EQ(cuMemFree(arrays.back()), CUDA_SUCCESS);
  const unsigned before = stand_in::calls("cuMemMap");
  std::vector<unsigned> maps;  // at each copy
  std::function<void()> look = [&] {
    maps.push_back(stand_in::calls("cuMemMap") - before);
    stand_in::meanwhile("cuMemcpyAsync", look);
  };
  stand_in::meanwhile("cuMemcpyAsync", look);
  // The copy leaves gaps between rows, so both arrays must be uploaded.
  CUDA_MEMCPY2D rows{};
  rows.srcMemoryType = rows.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  rows.srcDevice = arrays[0];
  rows.dstDevice = arrays[1];
  rows.srcPitch = rows.dstPitch = 2048;
  rows.WidthInBytes = 1024;
  rows.Height = 1024;
  ASSERT_EQ(cuMemcpy2D(&rows), CUDA_SUCCESS);
  static std::function<void()> nothing = [] {};
  stand_in::meanwhile("cuMemcpyAsync", nothing);
  ASSERT_GE(maps.size(), 2U);
  EXPECT_EQ(maps[maps.size() - 2], 2U);
  EXPECT_EQ(maps.back(), 2U);
  for (const CUdeviceptr each : arrays) EXPECT_EQ(cuMemFree(each), CUDA_SUCCESS);
}

TEST_F(Oversubscribed, StreamsBesideTheProgramsAreUsedAgain) {
  const auto one_stream = [&] {
    CUstream stream = nullptr;
    ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    ASSERT_NO_FATAL_FAILURE(work_on(stream));
    EXPECT_EQ(cuStreamDestroy(stream), CUDA_SUCCESS);
  };
  one_stream();
  const unsigned made = stand_in::calls("cuStreamCreateWithPriority");
  for (int n = 0; n < 20; ++n) one_stream();
  EXPECT_EQ(stand_in::calls("cuStreamCreateWithPriority"), made);
}

// When a context that the program has created ends, its events end, and a later context may have the same handle.
TEST_F(Oversubscribed, WorkInContextsOfTheProgramThatEnd) {
  CUcontext first = nullptr;
  ASSERT_EQ(cuCtxGetCurrent(&first), CUDA_SUCCESS);
  for (int n = 0; n < 3; ++n) {
    CUcontext own = nullptr;
    CUstream stream = nullptr;
    ASSERT_EQ(cuCtxCreate(&own, nullptr, 0, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    for (int m = 0; m < 3; ++m) ASSERT_NO_FATAL_FAILURE(work_on(stream));
    ASSERT_EQ(cuCtxDestroy(own), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSetCurrent(first), CUDA_SUCCESS);
  }
  std::vector<unsigned> there(bytes / 4);
  ASSERT_EQ(cuMemcpyDtoH(there.data(), array_, bytes), CUDA_SUCCESS);
  EXPECT_EQ(std::vector<unsigned>(there.begin(), there.begin() + 1024), std::vector<unsigned>(1024, 1));
}

TEST_F(Oversubscribed, AResetLeavesNoUserOfTheContextBehind) {
  CUcontext context = nullptr;
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 1), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
  CUdeviceptr made = 0;
  ASSERT_EQ(cuMemAlloc(&made, bytes), CUDA_SUCCESS);
  const auto users = [] {
    return stand_in::calls("cuDevicePrimaryCtxRetain") - stand_in::calls("cuDevicePrimaryCtxRelease_v2");
  };
  ASSERT_NO_FATAL_FAILURE(stand_in::enter_device_0());
  const unsigned before = users();
  EXPECT_EQ(cuDevicePrimaryCtxReset(1), CUDA_SUCCESS);
  EXPECT_EQ(users(), before);
  EXPECT_EQ(cuDevicePrimaryCtxRelease(1), CUDA_SUCCESS);
}

// The first allocation on a device reserves addresses with the driver. If the driver refuses, the call fails: later,
// the reservation would remove the view through which CPU code uses the memory.
TEST_F(Oversubscribed, AllocationsFailIfTheDriverReservesNoAddresses) {
  CUcontext context = nullptr;
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 1), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
  stand_in::fail("cuMemAddressReserve", CUDA_ERROR_OUT_OF_MEMORY);
  CUdeviceptr made = 0;
  EXPECT_NE(cuMemAlloc(&made, bytes), CUDA_SUCCESS);
  if (made == 0) {
    ASSERT_EQ(cuMemAlloc(&made, bytes), CUDA_SUCCESS);
  }
  ASSERT_EQ(cuMemsetD32(made, 7, bytes / 4), CUDA_SUCCESS);
  EXPECT_EQ(*reinterpret_cast<const unsigned*>(made), 7U);  // NOLINT(performance-no-int-to-ptr)
  EXPECT_EQ(cuMemFree(made), CUDA_SUCCESS);
  ASSERT_NO_FATAL_FAILURE(stand_in::enter_device_0());
  EXPECT_EQ(cuDevicePrimaryCtxRelease(1), CUDA_SUCCESS);
}

// Memory of cuMemCreate, which stays on its device. hpe may use 16 MiB of the device.
class OversubscribedHandles : public Oversubscribed {
 protected:
  static CUresult create(CUmemGenericAllocationHandle& made, std::size_t size) {
    CUmemAllocationProp what{};
    what.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    what.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
    return cuMemCreate(&made, size, &what, 0);
  }
};

TEST_F(OversubscribedHandles, CountsAgainstTheLimitUntilItIsReleased) {
  std::vector<CUmemGenericAllocationHandle> made;
  CUmemGenericAllocationHandle handle = 0;
  while (create(handle, 4 * mebibyte) == CUDA_SUCCESS) {
    made.push_back(handle);
    ASSERT_LE(made.size(), 4U);
    EXPECT_EQ(free_memory(), free_ - std::min(free_, made.size() * 4 * mebibyte));
  }
  EXPECT_EQ(made.size(), 4U) << "the data of array_ leaves the device";
  EXPECT_EQ(create(handle, 1 * mebibyte), CUDA_ERROR_OUT_OF_MEMORY);
  for (const CUmemGenericAllocationHandle each : made) EXPECT_EQ(cuMemRelease(each), CUDA_SUCCESS);
  EXPECT_EQ(free_memory(), free_);
  EXPECT_EQ(create(handle, 17 * mebibyte), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(free_memory(), free_);
}

TEST_F(OversubscribedHandles, CountsAsLongAsItIsMapped) {
  CUdeviceptr at = 0;
  ASSERT_EQ(cuMemAddressReserve(&at, 8 * mebibyte, 0, 0, 0), CUDA_SUCCESS);
  CUmemGenericAllocationHandle handle = 0;
  ASSERT_EQ(create(handle, 4 * mebibyte), CUDA_SUCCESS);
  ASSERT_EQ(cuMemMap(at, 4 * mebibyte, 0, handle, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
  EXPECT_EQ(free_memory(), free_ - 4 * mebibyte);
  ASSERT_EQ(cuMemUnmap(at, 4 * mebibyte), CUDA_SUCCESS);
  EXPECT_EQ(free_memory(), free_);
  EXPECT_EQ(cuMemAddressFree(at, 8 * mebibyte), CUDA_SUCCESS);
}

TEST_F(OversubscribedHandles, EvictsDataWhichStaysTheSame) {
  std::vector<CUdeviceptr> arrays(6);
  for (std::size_t n = 0; n < arrays.size(); ++n) {
    ASSERT_EQ(cuMemAlloc(&arrays[n], bytes), CUDA_SUCCESS);
    ASSERT_EQ(cuMemsetD32(arrays[n], static_cast<unsigned>(n), bytes / 4), CUDA_SUCCESS);
  }
  CUmemGenericAllocationHandle handle = 0;
  ASSERT_EQ(create(handle, 12 * mebibyte), CUDA_SUCCESS);
  for (std::size_t n = 0; n < arrays.size(); ++n) {
    ASSERT_EQ(cuMemsetD32(arrays[n], static_cast<unsigned>(n + 10), bytes / 8), CUDA_SUCCESS);
    std::vector<unsigned> there(bytes / 4), expected(bytes / 4, static_cast<unsigned>(n));
    std::fill_n(expected.begin(), bytes / 8, static_cast<unsigned>(n + 10));
    ASSERT_EQ(cuMemcpyDtoH(there.data(), arrays[n], bytes), CUDA_SUCCESS);
    EXPECT_EQ(there, expected);
  }
  EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
  for (const CUdeviceptr each : arrays) EXPECT_EQ(cuMemFree(each), CUDA_SUCCESS);
}

TEST_F(OversubscribedHandles, SmallAllocationsCount) {
  constexpr std::size_t small = mebibyte / 2;
  std::vector<CUdeviceptr> made;
  for (CUdeviceptr each = 0; made.size() < 64 && cuMemAlloc(&each, small) == CUDA_SUCCESS;) made.push_back(each);
  EXPECT_EQ(made.size(), 32U);
  EXPECT_EQ(free_memory(), free_ - std::min(free_, made.size() * small));
  for (const CUdeviceptr each : made) EXPECT_EQ(cuMemFree(each), CUDA_SUCCESS);
  EXPECT_EQ(free_memory(), free_);
}

// The k-th allocation of host memory fails, for each k. No exception reaches the program, and no device memory leaks.
TEST_F(Oversubscribed, CallsWithoutHostMemory) {
  std::vector<unsigned> host(bytes / 4, 7);
  const auto step = [](CUresult result) {
    EXPECT_TRUE(result == CUDA_SUCCESS || result == CUDA_ERROR_OUT_OF_MEMORY) << result;
    return result == CUDA_SUCCESS;
  };
  bool fired = true;
  for (unsigned k = 1; fired && k < 10000; ++k) {
    CUdeviceptr made = 0;
    failing_memory::arm(k);
    bool there = step(cuMemAlloc(&made, bytes));
    if (there) {
      step(cuMemsetD32Async(made, 3, bytes / 4, nullptr));
      step(cuMemcpyHtoDAsync(made, host.data(), bytes, nullptr));
      step(cuMemcpyDtoD(made, array_, bytes));
      step(cuMemcpyDtoH(host.data(), made, bytes));
      there = !step(cuMemFree(made));
    }
    fired = failing_memory::disarm();
    if (there) {
      ASSERT_EQ(cuMemFree(made), CUDA_SUCCESS) << k;
    }
    ASSERT_EQ(free_memory(), free_) << k;
  }
  EXPECT_FALSE(fired);
}

}  // namespace
