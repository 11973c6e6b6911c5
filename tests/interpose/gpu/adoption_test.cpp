// CPU code uses device memory that the program allocated through the driver. As with a GPU, CPU code cannot read the
// addresses of the stand-in's device memory; the stand-in keeps the bytes at other addresses.
#include <cuda.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csetjmp>
#include <csignal>
#include <cstring>
#include <functional>
#include <future>
#include <random>
#include <thread>

#include "tests/interpose/gpu/driver_under_test.h"
#include "tests/interpose/gpu/failing_memory.h"

namespace {

constexpr std::size_t MiB = std::size_t{1} << 20;

struct add_parameters {
  std::uint64_t address;
  std::uint64_t count;
  std::uint64_t summand;
};

// The body of a kernel: p[i] += summand for all 64-bit words; the parameters are p, the number of words and the
// summand.
void add_body(const std::uint64_t* parameters) {
  auto* const words = reinterpret_cast<std::uint64_t*>(stand_in::memory(parameters[0]));
  for (std::uint64_t i = 0; i < parameters[1]; ++i) words[i] += parameters[2];
}

const stand_in::kernel add_kernel{add_body, 3};

CUresult add(CUdeviceptr address, std::uint64_t count, std::uint64_t summand, CUstream stream = nullptr) {
  std::uint64_t at = address;
  void* parameters[] = {&at, &count, &summand};
  auto* const function = reinterpret_cast<CUfunction>(const_cast<stand_in::kernel*>(&add_kernel));
  return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr);
}

// Lets queued work continue after 50 ms, so that a test can show that a thread waits for the work.
std::thread resume_later() {
  return std::thread([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    stand_in::pause(false);
  });
}

std::uint64_t* words_at(CUdeviceptr address) { return reinterpret_cast<std::uint64_t*>(address); }

class Adoption : public testing::Test {
 protected:
  void SetUp() override {
    stand_in::enter_device_0();
    ASSERT_EQ(cuMemAlloc(&device, bytes), CUDA_SUCCESS);
    const std::vector<std::uint64_t> initial = numbers();
    ASSERT_EQ(cuMemcpyHtoD(device, initial.data(), bytes), CUDA_SUCCESS);
  }
  void TearDown() override {
    EXPECT_EQ(cuMemFree(device), CUDA_SUCCESS);  // if `device` is 0, nothing is freed
  }

  // Allocates memory until an allocation has the wanted address: like the driver, the stand-in reuses the addresses of
  // an ended context.
  void allocate_at(CUdeviceptr wanted) {
    std::vector<CUdeviceptr> others;
    for (device = 0; device != wanted && others.size() < 100; others.push_back(device))
      ASSERT_EQ(cuMemAlloc(&device, bytes), CUDA_SUCCESS);
    ASSERT_EQ(device, wanted);
    others.pop_back();
    for (const CUdeviceptr other : others) EXPECT_EQ(cuMemFree(other), CUDA_SUCCESS);
  }

  static std::vector<std::uint64_t> numbers() {
    std::vector<std::uint64_t> result(count);
    for (std::size_t i = 0; i < count; ++i) result[i] = i * 3;
    return result;
  }

  static constexpr std::size_t bytes = 9 * MiB + 8 * 77;
  static constexpr std::size_t count = bytes / 8;
  CUdeviceptr device = 0;
};

TEST_F(Adoption, TheHostReadsTheBytesThatADeviceWrote) {
  ASSERT_EQ(add(device, count, 5), CUDA_SUCCESS);
  const std::uint64_t* const p = words_at(device);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < count; ++i) wrong += p[i] != i * 3 + 5 ? 1 : 0;
  EXPECT_EQ(wrong, 0U);
}

TEST_F(Adoption, ADeviceReadsTheBytesThatTheHostWrote) {
  std::uint64_t* const p = words_at(device);
  for (std::size_t i = 0; i < count; i += 1000) p[i] = i;
  ASSERT_EQ(add(device, count, 7), CUDA_SUCCESS);
  std::vector<std::uint64_t> back(count);
  ASSERT_EQ(cuMemcpyDtoH(back.data(), device, bytes), CUDA_SUCCESS);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < count; ++i) wrong += back[i] != (i % 1000 == 0 ? i : i * 3) + 7 ? 1 : 0;
  EXPECT_EQ(wrong, 0U);
}

TEST_F(Adoption, TheHostWaitsForTheWorkOfOtherDevices) {
  const std::uint64_t* const p = words_at(device);
  ASSERT_EQ(p[0], 0U);
  CUcontext own = nullptr, other = nullptr;
  ASSERT_EQ(cuCtxGetCurrent(&own), CUDA_SUCCESS);
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&other, 1), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSetCurrent(other), CUDA_SUCCESS);
  stand_in::pause(true);
  ASSERT_EQ(add(device, count, 5), CUDA_SUCCESS);
  std::thread later = resume_later();
  EXPECT_EQ(p[1], 8U);
  later.join();
  ASSERT_EQ(cuCtxSetCurrent(own), CUDA_SUCCESS);
  EXPECT_EQ(cuDevicePrimaryCtxRelease(1), CUDA_SUCCESS);
}

TEST_F(Adoption, InTurns) {
  std::uint64_t* const p = words_at(device);
  std::uint64_t expected = p[count - 1];
  for (std::uint64_t round = 1; round < 20; ++round) {
    p[count - 1] += round;
    ASSERT_EQ(add(device, count, 100), CUDA_SUCCESS);
    expected += round + 100;
    ASSERT_EQ(p[count - 1], expected) << "round " << round;
    ASSERT_EQ(p[0], 100 * round);
  }
}

TEST_F(Adoption, WithFillsAndCopiesOfTheProgram) {
  std::uint64_t* const p = words_at(device);
  p[1] = 1;
  ASSERT_EQ(cuMemsetD8(device, 0x11, 64), CUDA_SUCCESS);
  EXPECT_EQ(p[1], 0x1111111111111111U);
  EXPECT_EQ(p[8], 24U);
  const std::uint64_t value = 99;
  ASSERT_EQ(cuMemcpyHtoD(device + 8, &value, 8), CUDA_SUCCESS);
  EXPECT_EQ(p[1], 99U);
  p[2] = 17;
  CUdeviceptr other = 0;
  ASSERT_EQ(cuMemAlloc(&other, bytes), CUDA_SUCCESS);
  ASSERT_EQ(cuMemcpyDtoD(other, device, bytes), CUDA_SUCCESS);
  EXPECT_EQ(words_at(other)[2], 17U);
  EXPECT_EQ(words_at(other)[count - 1], (count - 1) * 3);
  // A read by the device sees what the host has written, and leaves the view readable for the host.
  std::uint64_t back = 0;
  p[3] = 18;
  ASSERT_EQ(cuMemcpyDtoH(&back, device + 24, 8), CUDA_SUCCESS);
  EXPECT_EQ(back, 18U);
  p[3] = 19;
  ASSERT_EQ(cuMemcpyDtoH(&back, device + 24, 8), CUDA_SUCCESS);
  EXPECT_EQ(back, 19U);
  EXPECT_EQ(cuMemFree(other), CUDA_SUCCESS);
}

TEST_F(Adoption, ATouchWaitsForQueuedWork) {
  stand_in::pause(true);
  ASSERT_EQ(add(device, count, 1), CUDA_SUCCESS);
  std::thread later = resume_later();
  EXPECT_EQ(words_at(device)[4], 13U);
  later.join();
}

// During a capture, a touch does not wait for the devices, because the wait would invalidate the capture. After the end
// of the capture, touches wait for the devices.
TEST_F(Adoption, ATouchLeavesACaptureAlone) {
  CUstream stream = nullptr;
  CUgraph graph = nullptr;
  ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  testing::internal::CaptureStderr();
  EXPECT_EQ(words_at(device)[4], 12U);
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_NE(told.find("read by CPU code while a stream is captured"), std::string::npos) << told;
  EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
  stand_in::pause(true);
  ASSERT_EQ(add(device, count, 1), CUDA_SUCCESS);
  std::thread later = resume_later();
  EXPECT_EQ(words_at(device)[4], 13U);
  later.join();
  ASSERT_EQ(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamDestroy(stream), CUDA_SUCCESS);
  ASSERT_EQ(add(device, count, 1), CUDA_SUCCESS);
  EXPECT_EQ(words_at(device)[4], 14U);
}

// If a thread tries to end a capture that another thread began, the driver returns an error, and the capture goes on.
TEST_F(Adoption, ATouchLeavesACaptureAloneThatAnotherThreadTriedToEnd) {
  CUstream stream = nullptr;
  CUgraph graph = nullptr;
  ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  std::thread([&] {
    stand_in::enter_device_0();
    EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
  }).join();
  EXPECT_EQ(words_at(device)[4], 12U);
  EXPECT_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamDestroy(stream), CUDA_SUCCESS);
}

TEST_F(Adoption, ACaptureEndsWithItsContext) {
  CUstream stream = nullptr;
  ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  device = 0;
  ASSERT_EQ(cuDevicePrimaryCtxReset(0), CUDA_SUCCESS);
  stand_in::enter_device_0();
  ASSERT_EQ(cuMemAlloc(&device, bytes), CUDA_SUCCESS);
  ASSERT_EQ(cuMemsetD8(device, 0, bytes), CUDA_SUCCESS);
  ASSERT_EQ(add(device, count, 1), CUDA_SUCCESS);
  testing::internal::CaptureStderr();
  EXPECT_EQ(words_at(device)[4], 1U);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

// One thread's call waits in the driver until another thread has called the driver, as in programs in which two threads
// use NCCL.
class CallsThatWaitForEachOther : public Adoption {
 protected:
  void SetUp() override {
    Adoption::SetUp();
    ASSERT_EQ(cuMemAlloc(&other, bytes), CUDA_SUCCESS);
    ASSERT_EQ(cuMemsetD8(other, 0, bytes), CUDA_SUCCESS);
  }
  void TearDown() override {
    EXPECT_EQ(cuMemFree(other), CUDA_SUCCESS);
    Adoption::TearDown();
  }

  static void in_context(const std::function<void()>& run) {
    stand_in::enter_device_0();
    run();
  }

  // Whether a launch returns while a copy by another thread waits in the driver and, if `touch` is true, a third thread
  // touches memory.
  bool launch_returns(bool touch) {
    stand_in::pause(true);
    EXPECT_EQ(add(device, count, 1), CUDA_SUCCESS);
    const unsigned copies = stand_in::calls("cuMemcpyDtoH_v2");
    std::uint64_t copied = 0;
    std::thread copying([&] { in_context([&] { cuMemcpyDtoH(&copied, device + 8, 8); }); });
    while (stand_in::calls("cuMemcpyDtoH_v2") == copies) std::this_thread::yield();
    std::uint64_t read = 0;
    std::thread touching([&] {
      if (touch) read = words_at(device)[2];
    });
    if (touch) std::this_thread::sleep_for(std::chrono::milliseconds(200));  // gives the touch time to begin its wait
    auto launched = std::async(std::launch::async, [&] { in_context([&] { add(other, count, 5); }); });
    const bool returned = launched.wait_for(std::chrono::seconds(20)) == std::future_status::ready;
    stand_in::pause(false);
    copying.join();
    touching.join();
    EXPECT_EQ(copied, 4U);
    EXPECT_EQ(read, touch ? 7U : 0U);
    return returned;
  }

  CUdeviceptr other = 0;
};

TEST_F(CallsThatWaitForEachOther, GoOnAfterATouch) {
  EXPECT_EQ(words_at(other)[1], 0U);
  EXPECT_TRUE(launch_returns(false));
  EXPECT_EQ(words_at(other)[1], 5U);
}

TEST_F(CallsThatWaitForEachOther, GoOnDuringTheFirstTouch) { EXPECT_TRUE(launch_returns(true)); }

TEST_F(CallsThatWaitForEachOther, GoOnDuringALaterTouch) {
  EXPECT_EQ(words_at(other)[1], 0U);
  EXPECT_TRUE(launch_returns(true));
}

TEST_F(Adoption, SmallAllocationsThatShareAPage) {
  std::vector<CUdeviceptr> small(20);
  for (CUdeviceptr& s : small) ASSERT_EQ(cuMemAlloc(&s, 8), CUDA_SUCCESS);
  for (std::size_t i = 0; i < small.size(); ++i) *words_at(small[i]) = i;
  for (const CUdeviceptr s : small) ASSERT_EQ(add(s, 1, 50), CUDA_SUCCESS);
  ASSERT_EQ(cuMemFree(small[3]), CUDA_SUCCESS);
  for (std::size_t i = 4; i < small.size(); ++i) *words_at(small[i]) += 1000;
  ASSERT_EQ(cuMemFree(small[4]), CUDA_SUCCESS) << "the neighbours of the freed memory must keep their data";
  for (std::size_t i = 5; i < small.size(); ++i) {
    std::uint64_t value = 0;
    ASSERT_EQ(cuMemcpyDtoH(&value, small[i], 8), CUDA_SUCCESS);
    EXPECT_EQ(value, i + 1050);
    EXPECT_EQ(*words_at(small[i]), i + 1050);
  }
  for (std::size_t i = 0; i < small.size(); ++i) EXPECT_EQ(cuMemFree(i == 3 || i == 4 ? 0 : small[i]), CUDA_SUCCESS);
}

TEST_F(Adoption, OfManyThreads) {
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  constexpr std::size_t part = count / 8;
  for (std::size_t t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      stand_in::enter_device_0();
      const CUdeviceptr mine = device + t * part * 8;
      bool right = true;
      for (std::uint64_t round = 1; round <= 10; ++round) {
        words_at(mine)[t] += 1;
        right = right && add(mine, part, 10) == CUDA_SUCCESS;
        right = right && words_at(mine)[t] == (t * part + t) * 3 + round * 11;
        right = right && words_at(mine)[part - 1] == (t * part + part - 1) * 3 + round * 10;
      }
      good += right ? 1 : 0;
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(good, 8);
}

sigjmp_buf escape;
void leave(int) { siglongjmp(escape, 1); }

// Whether a read of an address faults; the address may be null.
__attribute__((no_sanitize("undefined"))) bool faults(const std::uint64_t* address) {
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = leave;
  sigaction(SIGSEGV, &action, &before);
  volatile bool faulted = true;  // volatile, because siglongjmp must not change its value
  if (sigsetjmp(escape, 1) == 0) {
    (void)*const_cast<const volatile std::uint64_t*>(address);
    faulted = false;
  }
  sigaction(SIGSEGV, &before, nullptr);
  return faulted;
}

TEST_F(Adoption, FreedMemoryFaultsAgain) {
  EXPECT_FALSE(faults(words_at(device)));
  const CUdeviceptr freed = device;
  ASSERT_EQ(cuMemFree(device), CUDA_SUCCESS);
  device = 0;
  EXPECT_TRUE(faults(words_at(freed)));
  EXPECT_TRUE(faults(nullptr)) << "a fault outside hpe memory must reach the program";
}

// On a lost device, the driver cannot find allocations. hpe must not take the touched allocation for a gap, whose bytes
// are zeros.
TEST_F(Adoption, ATouchFailsIfTheDeviceIsLost) {
  auto* const fail_always = stand_in::find<stand_in::fail_always_function>("stand_in_fail_always");
  EXPECT_EQ(words_at(device)[4], 12U);
  ASSERT_EQ(add(device, count, 1), CUDA_SUCCESS);
  fail_always("cuMemGetAddressRange_v2", CUDA_ERROR_ILLEGAL_ADDRESS);
  testing::internal::CaptureStderr();
  EXPECT_TRUE(faults(words_at(device) + 4));
  EXPECT_NE(testing::internal::GetCapturedStderr().find("cannot be brought to the host"), std::string::npos);
  fail_always("cuMemGetAddressRange_v2", CUDA_SUCCESS);
  EXPECT_EQ(words_at(device)[4], 13U);
}

// The touch cannot wait for the devices, so it fails and changes nothing; the next touch succeeds.
TEST_F(Adoption, ATouchThatRunsOutOfMemoryCanBeRepeated) {
  EXPECT_EQ(words_at(device)[4], 12U);
  ASSERT_EQ(add(device, count, 1), CUDA_SUCCESS);
  std::function<void()> run_short = [] { failing_memory::arm(1); };
  stand_in::meanwhile("cuDevicePrimaryCtxRetain", run_short);
  testing::internal::CaptureStderr();
  EXPECT_TRUE(faults(words_at(device) + 4));
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_NE(told.find("cannot be brought to the host"), std::string::npos) << told;
  EXPECT_FALSE(faults(words_at(device) + 4));
  EXPECT_EQ(words_at(device)[4], 13U);
  std::uint64_t back = 0;
  words_at(device)[4] = 7;
  ASSERT_EQ(cuMemcpyDtoH(&back, device + 32, 8), CUDA_SUCCESS);
  EXPECT_EQ(back, 7U);
}

// If the sum of address and size wraps around, hpe must still find the memory that CPU code has written.
TEST_F(Adoption, ARangeBeyondTheAddressSpaceBeginsWhereItBegins) {
  words_at(device)[5] = 4;
  EXPECT_NE(cuMemsetD8(device, 0, ~std::size_t{0} - 8), CUDA_SUCCESS);
  EXPECT_EQ(*reinterpret_cast<std::uint64_t*>(stand_in::memory(device + 40)), 4U)
      << "hpe uploads the host's writes before the call";
  EXPECT_NE(cuMemsetD32(device, 0, (~std::size_t{0} >> 2) + 3), CUDA_SUCCESS);
  EXPECT_EQ(words_at(device)[5], 4U);
}

TEST_F(Adoption, LaunchesOfGraphsAskAboutTouchedMemoryOnly) {
  int graph = 0;
  CUgraphNode node = nullptr;
  auto* const of = reinterpret_cast<CUgraph>(&graph);
  constexpr unsigned nodes = 200;
  EXPECT_EQ(words_at(device)[5], 15U);
  const CUdeviceptr far = device + (std::uint64_t{1} << 40);
  for (unsigned n = 0; n < nodes; ++n)
    ASSERT_EQ(cuGraphAddMemFreeNode(&node, of, nullptr, 0, far + n * (std::uint64_t{4} << 20)), CUDA_SUCCESS);
  int other = 0;
  const unsigned asked = stand_in::calls("cuMemGetAddressRange_v2");
  ASSERT_EQ(cuGraphLaunch(reinterpret_cast<CUgraphExec>(&other), nullptr), CUDA_SUCCESS);
  EXPECT_LT(stand_in::calls("cuMemGetAddressRange_v2") - asked, nodes);
  // After a graph is destroyed, hpe no longer assumes that its nodes free memory.
  ASSERT_EQ(cuGraphAddMemFreeNode(&node, of, nullptr, 0, device), CUDA_SUCCESS);
  (void)cuGraphDestroy(of);
  words_at(device)[5] = 16;
  const unsigned before = stand_in::calls("cuMemGetAddressRange_v2");
  ASSERT_EQ(cuGraphLaunch(reinterpret_cast<CUgraphExec>(&other), nullptr), CUDA_SUCCESS);
  EXPECT_EQ(words_at(device)[5], 16U);
  EXPECT_LE(stand_in::calls("cuMemGetAddressRange_v2") - before, 8U)
      << "hpe asks the driver for the upload and for the fetch only";
}

TEST_F(Adoption, MemoryThatAGraphFreedFaultsAgain) {
  int graph = 0;
  CUgraphNode node = nullptr;
  ASSERT_EQ(cuGraphAddMemFreeNode(&node, reinterpret_cast<CUgraph>(&graph), nullptr, 0, device), CUDA_SUCCESS);
  words_at(device)[5] = 4;
  ASSERT_EQ(cuGraphLaunch(reinterpret_cast<CUgraphExec>(&graph), nullptr), CUDA_SUCCESS);
  EXPECT_TRUE(faults(words_at(std::exchange(device, 0))));
}

TEST_F(Adoption, WithDecompressionByTheDevice) {
  EXPECT_EQ(words_at(device)[0], 0U);
  EXPECT_EQ(words_at(device)[5], 15U);
  CUmemDecompressParams what{};
  what.srcNumBytes = what.dstNumBytes = 8;
  what.src = reinterpret_cast<void*>(device + 40);  // NOLINT(performance-no-int-to-ptr): CUDA's integer address
  what.dst = reinterpret_cast<void*>(device);       // NOLINT(performance-no-int-to-ptr): likewise
  std::size_t wrong = 0;
  ASSERT_EQ(cuMemBatchDecompressAsync(&what, 1, 0, &wrong, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(words_at(device)[0], 15U);
}

TEST_F(Adoption, LastsOverTheEndOfAContext) {
  CUcontext kept = nullptr;
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&kept, 0), CUDA_SUCCESS);
  words_at(device)[5] = 4;
  ASSERT_EQ(cuDevicePrimaryCtxRelease(0), CUDA_SUCCESS) << "the context has other users, so its memory is not lost";
  std::uint64_t back = 0;
  ASSERT_EQ(cuMemcpyDtoH(&back, device + 40, 8), CUDA_SUCCESS);
  EXPECT_EQ(back, 4U);
  EXPECT_EQ(words_at(device)[5], 4U);
}

TEST_F(Adoption, AResetFreesMemoryAndEverythingGoesOn) {
  words_at(device)[5] = 4;
  const CUdeviceptr lost = std::exchange(device, 0);
  ASSERT_EQ(cuDevicePrimaryCtxReset(0), CUDA_SUCCESS);
  testing::internal::CaptureStderr();
  EXPECT_TRUE(faults(words_at(lost)));
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_NE(told.find("freed when its context ended"), std::string::npos) << told;
  std::uint64_t back = 0;
  EXPECT_EQ(cuMemcpyDtoH(&back, lost, 8), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  // New memory can be used in the same way, even at the same address.
  stand_in::enter_device_0();
  allocate_at(lost);
  const std::vector<std::uint64_t> initial = numbers();
  ASSERT_EQ(cuMemcpyHtoD(device, initial.data(), bytes), CUDA_SUCCESS);
  EXPECT_EQ(words_at(device)[5], 15U);
  words_at(device)[6] = 1;
  ASSERT_EQ(add(device, count, 5), CUDA_SUCCESS);
  EXPECT_EQ(words_at(device)[5], 20U);
  EXPECT_EQ(words_at(device)[6], 6U);
}

TEST_F(Adoption, AResetOfAnotherDeviceLosesNothing) {
  CUcontext other = nullptr;
  CUdeviceptr there = 0;
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&other, 1), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxPushCurrent(other), CUDA_SUCCESS);
  ASSERT_EQ(cuMemAlloc(&there, bytes), CUDA_SUCCESS);
  ASSERT_EQ(cuMemsetD8(there, 0x22, bytes), CUDA_SUCCESS);
  EXPECT_EQ(words_at(there)[7], 0x2222222222222222U);
  words_at(device)[5] = 4;
  ASSERT_EQ(cuDevicePrimaryCtxReset(1), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxPopCurrent(&other), CUDA_SUCCESS);
  std::uint64_t back = 0;
  ASSERT_EQ(cuMemcpyDtoH(&back, device + 40, 8), CUDA_SUCCESS);
  EXPECT_EQ(back, 4U);
  EXPECT_EQ(words_at(device)[5], 4U);
  ASSERT_EQ(add(device, count, 1), CUDA_SUCCESS);
  EXPECT_EQ(words_at(device)[5], 5U);
}

// hpe does not see this reset, because the test calls the driver's own function, like a library that looked up the
// function before hpe was loaded.
TEST_F(Adoption, AResetBehindHpesBack) {
  words_at(device)[5] = 4;
  const CUdeviceptr lost = std::exchange(device, 0);
  auto* const reset = stand_in::find<CUresult(CUdevice)>("cuDevicePrimaryCtxReset_v2");
  ASSERT_NE(reset, nullptr);
  ASSERT_EQ(reset(0), CUDA_SUCCESS);
  stand_in::enter_device_0();
  allocate_at(lost);
  const std::vector<std::uint64_t> initial = numbers();
  ASSERT_EQ(cuMemcpyHtoD(device, initial.data(), bytes), CUDA_SUCCESS);
  ASSERT_EQ(add(device, count, 5), CUDA_SUCCESS);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < count; ++i) wrong += words_at(device)[i] != i * 3 + 5 ? 1 : 0;
  EXPECT_EQ(wrong, 0U) << "the new memory must not have the host's bytes of the old memory";
}

TEST_F(Adoption, ChildrenOfForkHaveNoPartInIt) {
  EXPECT_EQ(words_at(device)[1], 3U);
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGSEGV, SIG_DFL);
    (void)*const_cast<volatile std::uint64_t*>(words_at(device));
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

}  // namespace
