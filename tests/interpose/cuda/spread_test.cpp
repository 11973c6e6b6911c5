// A program that is spread over the stand-in's two devices (HPE_SPREAD=1): its arrays move while it works, and all that
// writes them counts.
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <future>
#include <thread>
#include <vector>

#include "interpose/adopted_pointers.h"
#include "tests/interpose/cuda/spread_fixture.h"

namespace {

using stand_in::added_up;
using stand_in::bytes;
using stand_in::Spread;
using stand_in::threads;
using stand_in::words;

// An array that nobody has written moves without its bytes, at the first launch.
TEST_F(Spread, CallsOfLibcFillAnArray) {
  const int file = ::memfd_create("values", MFD_CLOEXEC);
  ASSERT_EQ(::pwrite(file, values_.data(), bytes, 0), static_cast<ssize_t>(bytes));
  // The whole array, whose bytes the driver knows as two allocations.
  EXPECT_EQ(::pread(file, memory(), bytes, 0), static_cast<ssize_t>(bytes));
  ASSERT_NO_FATAL_FAILURE(launch());
  expect_values();
  ::close(file);
}

TEST_F(Spread, CpuCodeFillsAnArray) {
  std::copy(values_.begin(), values_.end(), static_cast<unsigned*>(memory()));
  ASSERT_NO_FATAL_FAILURE(launch());
  expect_values();
}

// The last bytes of the array have no memory for a moment, in which another thread copies to them.
TEST_F(Spread, AnArrayMovesWhileNoOtherThreadQueuesWork) {
  using namespace std::chrono_literals;
  const std::vector<unsigned> ones(words, 1);
  std::promise<void> ready, has_no_memory;
  std::future<CUresult> copied = std::async(std::launch::async, [&] {
    stand_in::enter_device_0();
    ready.set_value();
    has_no_memory.get_future().wait();
    return cuMemcpyHtoD(array_, ones.data(), bytes);
  });
  ready.get_future().wait();
  bool moved = false;
  std::function<void()> copy = [&] {
    moved = true;
    has_no_memory.set_value();
    copied.wait_for(50ms);
  };
  stand_in::meanwhile("cuMemRelease", copy);
  ASSERT_NO_FATAL_FAILURE(launch());
  ASSERT_TRUE(moved);
  EXPECT_EQ(copied.get(), CUDA_SUCCESS);
  EXPECT_EQ(device_of(array_ + bytes - 4), 0);
}

TEST_F(Spread, AResetLeavesNothingBehind) {
  const unsigned unloaded = stand_in::calls("cuModuleUnload");
  for (int round = 0; round < 2; ++round) {
    // The program's stream ends with its context.
    CUstream stream = nullptr;
    ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_DEFAULT), CUDA_SUCCESS);
    ASSERT_EQ(cuMemsetD32Async(array_, 1, words, stream), CUDA_SUCCESS);
    ASSERT_NO_FATAL_FAILURE(expect_sums(added_up, added_up));
    ASSERT_EQ(cuDevicePrimaryCtxReset(0), CUDA_SUCCESS);
    ASSERT_NO_FATAL_FAILURE(stand_in::enter_device_0());
    CUdeviceptr elsewhere = 0;  // the next array has another address, so decisions are made anew
    ASSERT_EQ(cuMemAlloc(&elsewhere, bytes), CUDA_SUCCESS);
    ASSERT_NO_FATAL_FAILURE(prepare());
    ASSERT_EQ(cuMemFree(elsewhere), CUDA_SUCCESS);
  }
  EXPECT_EQ(stand_in::calls("cuModuleUnload") - unloaded, 4U) << "patched modules of two devices";
}

// All of them use the copies of one array.
TEST_F(Spread, StreamsOnOtherDevicesEndWithTheirThread) {
  ASSERT_EQ(cuMemsetD32(array_, 1, words), CUDA_SUCCESS);
  constexpr unsigned count = 3;
  const unsigned before = stand_in::calls("cuStreamDestroy_v2");
  for (unsigned n = 0; n < count; ++n)
    std::thread([&] {
      stand_in::enter_device_0();
      expect_sums(added_up, added_up, CU_STREAM_PER_THREAD);
    }).join();
  EXPECT_EQ(stand_in::calls("cuStreamDestroy_v2") - before, count) << "one for each thread, on the second device";
  expect_sums(added_up, added_up, CU_STREAM_PER_THREAD);
}

// The copies of the array must not be overwritten before.
TEST_F(Spread, StreamsOnOtherDevicesOutliveTheirThreadWhileTheyWork) {
  ASSERT_EQ(cuMemsetD32(array_, 1, words), CUDA_SUCCESS);
  const unsigned before = stand_in::calls("cuStreamDestroy_v2");
  const auto ended = [&] { return stand_in::calls("cuStreamDestroy_v2") - before; };
  stand_in::pause(true);
  std::thread([&] {
    stand_in::enter_device_0();
    unsigned added = added_up;
    void* parameters[] = {&flags_, &array_, &sums_, &added};
    EXPECT_EQ(cuLaunchKernel(adds_up_, threads / 64, 1, 1, 64, 1, 1, 0, CU_STREAM_PER_THREAD, parameters, nullptr),
              CUDA_SUCCESS);
  }).join();
  EXPECT_EQ(ended(), 0U);
  stand_in::pause(false);
  std::thread([&] {
    stand_in::enter_device_0();
    expect_sums(added_up, added_up, CU_STREAM_PER_THREAD);
  }).join();
  EXPECT_EQ(ended(), 2U);
}

TEST_F(Spread, ALaunchWhosePartsAreRefusedRunsOnOneDevice) {
  auto* const limit = stand_in::find<stand_in::limit_function>("stand_in_limit_parameters");
  ASSERT_EQ(cuMemsetD32(array_, 1, words), CUDA_SUCCESS);
  limit(28);  // the program's kernel has as many
  const unsigned on_first = stand_in::calls("launches on 0");
  unsigned added = added_up;
  void* parameters[] = {&flags_, &array_, &sums_, &added};
  EXPECT_EQ(cuLaunchKernel(adds_up_, threads / 64, 1, 1, 64, 1, 1, 0, nullptr, parameters, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(stand_in::calls("launches on 0"), on_first + 1);
  limit(0);
  expect_sums(added_up, added_up);
}

TEST_F(Spread, LargeCopiesOfPageableMemoryAreStaged) {
  constexpr std::size_t large = std::size_t{96} << 20;
  std::vector<unsigned> given(large / sizeof(unsigned)), back(given.size());
  for (unsigned n = 0; n < given.size(); ++n) given[n] = n * 2654435761U;
  CUdeviceptr array = 0;
  ASSERT_EQ(cuMemAlloc(&array, large), CUDA_SUCCESS);
  const unsigned by_driver = stand_in::calls("cuMemcpyHtoD_v2") + stand_in::calls("cuMemcpyDtoH_v2");
  EXPECT_EQ(cuMemcpyHtoD(array, given.data(), large), CUDA_SUCCESS);
  EXPECT_EQ(cuMemcpyDtoH(back.data(), array, large), CUDA_SUCCESS);
  EXPECT_TRUE(back == given);
  EXPECT_EQ(stand_in::calls("cuMemcpyHtoD_v2") + stand_in::calls("cuMemcpyDtoH_v2"), by_driver);
  EXPECT_EQ(cuMemFree(array), CUDA_SUCCESS);
}

// Memory on several devices has no handle for other processes, and is one allocation for messages.
TEST_F(Spread, MessagesUseArraysAsOneAllocation) {
  auto* const calls = hpe::interpose::adopted_pointers::instance();
  ASSERT_NE(calls, nullptr);
  using use = hpe::interpose::adopted_pointers::peer_use;
  EXPECT_EQ(calls->bytes_from(array_ + 4), bytes - 4);
  EXPECT_FALSE(calls->share(array_, bytes, use::read, 0).has_value());
  std::byte* const buffer = calls->borrow(bytes);
  std::memcpy(buffer, values_.data(), bytes);
  calls->start_write(array_, buffer, bytes).wait();
  calls->give_back(buffer, bytes);
  ASSERT_NO_FATAL_FAILURE(launch());
  expect_values();
}

TEST_F(Spread, TheDriverRefusesLaunchesWithoutThreads) {
  unsigned added = added_up;
  void* parameters[] = {&flags_, &array_, &sums_, &added};
  EXPECT_EQ(cuLaunchKernel(adds_up_, 64, 1, 1, 0, 1, 1, 0, nullptr, parameters, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuLaunchKernel(stays_, 64, 0, 1, 64, 1, 1, 0, nullptr, parameters, nullptr), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
