// A program that is spread over the stand-in's two devices (HPE_SPREAD=1) and works in several contexts. Copies of
// arrays must contain the bytes of all earlier writes, and arrays must move only after all earlier work.
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <thread>
#include <utility>

#include "tests/interpose/gpu/spread_fixture.h"

namespace {

using stand_in::added_up;
using stand_in::bytes;
using stand_in::Spread;
using stand_in::words;

// A kernel that runs until the test releases it.
const stand_in::kernel held{[](const std::uint64_t* parameters) {
                              const auto& open = *reinterpret_cast<const std::atomic<bool>*>(parameters[0]);
                              while (!open) std::this_thread::yield();
                            },
                            1};

class SpreadCopies : public Spread {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(Spread::SetUp());
    ASSERT_EQ(cuCtxGetCurrent(&first_), CUDA_SUCCESS);
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&second_, 1), CUDA_SUCCESS);
  }
  void TearDown() override {
    EXPECT_EQ(cuDevicePrimaryCtxRelease(1), CUDA_SUCCESS);
    Spread::TearDown();
  }
  /// Calls then() after the writes are queued and before they have run.
  void expect_copies_with_writes_on(
      CUcontext other, CUstream (*make)(), const std::function<void()>& then = [] {});
  void expect_copies_while_another_context_ends(CUstream (*stream)());
  /// Makes a context on the first device, in addition to the primary one.
  [[nodiscard]] CUcontext made() const {
    CUcontext own = nullptr;
    EXPECT_EQ(cuCtxCreate(&own, nullptr, 0, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuCtxSetCurrent(first_), CUDA_SUCCESS);
    return own;
  }
  static CUstream legacy() { return CU_STREAM_LEGACY; }
  static CUstream per_thread() { return CU_STREAM_PER_THREAD; }

  CUcontext first_ = nullptr, second_ = nullptr;
};

// hpe makes a copy of the array while a stream of another context writes elements. The first launch does not read these
// elements; later launches do, so the copy must then contain the written bytes.
void SpreadCopies::expect_copies_with_writes_on(CUcontext other, CUstream (*make)(),
                                                const std::function<void()>& then) {
  ASSERT_EQ(cuMemsetD32(array_, 1, words), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSetCurrent(other), CUDA_SUCCESS);
  const CUstream stream = make();
  std::atomic<bool> open{false};
  auto* address = &open;
  void* parameters[] = {&address};
  auto* const function = reinterpret_cast<CUfunction>(const_cast<stand_in::kernel*>(&held));
  ASSERT_EQ(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr), CUDA_SUCCESS);
  const CUdeviceptr others = array_ + 8 * added_up * sizeof(unsigned);
  ASSERT_EQ(cuMemsetD32Async(others, 3, words - 8 * added_up, stream), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSetCurrent(first_), CUDA_SUCCESS);
  ASSERT_NO_FATAL_FAILURE(then());
  const auto opens = std::async(std::launch::async, [&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    open = true;
  });
  ASSERT_NO_FATAL_FAILURE(expect_sums(added_up, added_up));
  ASSERT_EQ(cuCtxSetCurrent(other), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSetCurrent(first_), CUDA_SUCCESS);
  ASSERT_NO_FATAL_FAILURE(expect_sums(2 * added_up, 4 * added_up));
}

TEST_F(SpreadCopies, FollowWritesOnAStreamOfAnotherContext) {
  expect_copies_with_writes_on(second_, [] {
    CUstream made = nullptr;
    EXPECT_EQ(cuStreamCreate(&made, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    return made;
  });
}
TEST_F(SpreadCopies, FollowWritesOnTheDefaultStreamOfAnotherContext) { expect_copies_with_writes_on(second_, legacy); }
TEST_F(SpreadCopies, FollowWritesOnDefaultStreamsOfContextsOfTheProgram) {
  for (const auto stream : {legacy, per_thread}) {
    const CUcontext own = made();
    ASSERT_NO_FATAL_FAILURE(expect_copies_with_writes_on(own, stream));
    ASSERT_EQ(cuCtxDestroy(own), CUDA_SUCCESS);
    ASSERT_NO_FATAL_FAILURE(expect_sums(added_up, added_up)) << "the ended context has no pending writes";
  }
}
void SpreadCopies::expect_copies_while_another_context_ends(CUstream (*stream)()) {
  const CUcontext own = made(), other = made();
  expect_copies_with_writes_on(own, stream, [&] { ASSERT_EQ(cuCtxDestroy(other), CUDA_SUCCESS); });
  ASSERT_EQ(cuCtxDestroy(own), CUDA_SUCCESS);
}
TEST_F(SpreadCopies, FollowWritesAlsoWhenAnotherContextEnds) { expect_copies_while_another_context_ends(legacy); }
TEST_F(SpreadCopies, FollowWritesOfAThreadAlsoWhenAnotherContextEnds) {
  expect_copies_while_another_context_ends(per_thread);
}
// The program calls the driver like a library that retains a primary context and then releases it.
TEST_F(SpreadCopies, FollowWritesAlsoWhenAPrimaryContextIsReleased) {
  const CUcontext own = made();
  ASSERT_NO_FATAL_FAILURE(expect_copies_with_writes_on(own, legacy, [&] {
    CUcontext same = nullptr;
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&same, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuDevicePrimaryCtxRelease(0), CUDA_SUCCESS);
  }));
  ASSERT_EQ(cuCtxDestroy(own), CUDA_SUCCESS);
}

// Work in a context that the program has made uses an array, and another context frees the array. The memory must be
// unmapped only after this work.
TEST_F(SpreadCopies, MemoryIsUnmappedAfterTheWorkOfContextsOfTheProgram) {
  const CUcontext own = made();
  ASSERT_EQ(cuCtxSetCurrent(own), CUDA_SUCCESS);
  CUdeviceptr read = 0;
  ASSERT_EQ(cuMemAlloc(&read, sizeof(unsigned)), CUDA_SUCCESS);
  static std::atomic<bool> done{false};
  static bool unmapped = false, was_done = false;
  static std::function<void()> unmaps = [] {
    unmapped = true;
    was_done = done;
  };
  stand_in::meanwhile("cuMemUnmap", unmaps);
  stand_in::pause(true);
  ASSERT_EQ(cuMemcpyDtoDAsync(read, array_ + bytes - sizeof(unsigned), sizeof(unsigned), nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSetCurrent(first_), CUDA_SUCCESS);
  const auto goes_on = std::async(std::launch::async, [] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    done = true;
    stand_in::pause(false);
  });
  ASSERT_EQ(cuMemFree(std::exchange(array_, 0)), CUDA_SUCCESS);
  EXPECT_TRUE(unmapped);
  EXPECT_TRUE(was_done);
  ASSERT_EQ(cuCtxDestroy(own), CUDA_SUCCESS);
}

}  // namespace
