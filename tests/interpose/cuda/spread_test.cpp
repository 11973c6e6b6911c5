// A program that is spread over the stand-in's two devices (HPE_SPREAD=1): its arrays move while it works, and all that
// writes them counts.
#include <cuda.h>
#include <gtest/gtest.h>
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
#include "tests/interpose/cuda/driver_under_test.h"

namespace {

// `stays` adds 1 to each 256th element on one device: arrays that lie in parts come there. Threads of `adds_up` add up
// each eighth element of an array where their flag says so. The prediction does not know the flags, so it spreads that
// kernel and lets each device have a copy of the array.
const char* const code = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry stays(.param .u64 stays_0, .param .u32 stays_1) {
  .reg .pred %p<3>;
  .reg .b32 %r<9>;
  .reg .b64 %d<5>;
  mov.u32 %r0, %smid;
  ld.param.u64 %d0, [stays_0];
  ld.param.u32 %r1, [stays_1];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.u32 %r5, %r2, %r3, %r4;
  shl.b32 %r6, %r5, 8;
  setp.ge.u32 %p0, %r6, %r1;
  @%p0 bra DONE;
  mul.wide.u32 %d1, %r6, 4;
  add.u64 %d2, %d0, %d1;
  ld.global.u32 %r7, [%d2];
  add.u32 %r8, %r7, 1;
  st.global.u32 [%d2], %r8;
DONE:
  ret;
}
.visible .entry adds_up(.param .u64 adds_up_0, .param .u64 adds_up_1, .param .u64 adds_up_2, .param .u32 adds_up_3) {
  .reg .pred %p<3>;
  .reg .b32 %r<10>;
  .reg .b64 %d<8>;
  ld.param.u64 %d0, [adds_up_0];
  ld.param.u64 %d1, [adds_up_1];
  ld.param.u64 %d2, [adds_up_2];
  ld.param.u32 %r0, [adds_up_3];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.u32 %r4, %r1, %r2, %r3;
  mul.wide.u32 %d3, %r4, 4;
  add.u64 %d4, %d0, %d3;
  ld.global.u32 %r5, [%d4];
  mov.u32 %r6, 0;
  setp.eq.u32 %p0, %r5, 0;
  @%p0 bra STORE;
  mov.u32 %r7, 0;
LOOP:
  mul.wide.u32 %d5, %r7, 32;
  add.u64 %d6, %d1, %d5;
  ld.global.u32 %r8, [%d6];
  add.u32 %r6, %r6, %r8;
  add.u32 %r7, %r7, 1;
  setp.lt.u32 %p1, %r7, %r0;
  @%p1 bra LOOP;
STORE:
  add.u64 %d7, %d2, %d3;
  st.global.u32 [%d7], %r6;
  ret;
}
)";

constexpr unsigned words = 1U << 22U;  // 16 MiB, of which each device gets a half at first
constexpr std::size_t bytes = words * sizeof(unsigned);
constexpr unsigned threads = 1U << 16U, added_up = 1U << 17U;

class Spread : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(stand_in::enter_device_0());
    ASSERT_NO_FATAL_FAILURE(prepare());
    values_.resize(words);
    for (unsigned n = 0; n < words; ++n) values_[n] = n * 2654435761U;
  }
  void TearDown() override {
    for (const CUdeviceptr m : {array_, flags_, sums_}) EXPECT_EQ(cuMemFree(m), CUDA_SUCCESS);
    EXPECT_EQ(cuModuleUnload(module_), CUDA_SUCCESS);
  }

  void prepare() {
    ASSERT_EQ(cuModuleLoadData(&module_, code), CUDA_SUCCESS);
    ASSERT_EQ(cuModuleGetFunction(&stays_, module_, "stays"), CUDA_SUCCESS);
    ASSERT_EQ(cuModuleGetFunction(&adds_up_, module_, "adds_up"), CUDA_SUCCESS);
    ASSERT_EQ(cuMemAlloc(&array_, bytes), CUDA_SUCCESS);
    ASSERT_EQ(device_of(array_ + bytes - 4), 1) << "the test needs arrays in parts";
    ASSERT_EQ(cuMemAlloc(&sums_, threads * sizeof(unsigned)), CUDA_SUCCESS);
    ASSERT_EQ(cuMemAlloc(&flags_, threads * sizeof(unsigned)), CUDA_SUCCESS);
    ASSERT_EQ(cuMemsetD32(flags_, 0, threads), CUDA_SUCCESS);
    for (const unsigned thread : {0U, threads - 1})
      ASSERT_EQ(cuMemsetD32(flags_ + thread * sizeof(unsigned), 1, 1), CUDA_SUCCESS);
  }

  // The device that has a byte, as the driver itself says.
  static int device_of(CUdeviceptr at) {
    int device = -1;
    stand_in::find<CUresult(void*, CUpointer_attribute, CUdeviceptr)>("cuPointerGetAttribute")(
        &device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, at);
    return device;
  }
  void launch() {
    unsigned count = words;
    void* parameters[] = {&array_, &count};
    ASSERT_EQ(cuLaunchKernel(stays_, words / 256 / 64, 1, 1, 64, 1, 1, 0, nullptr, parameters, nullptr), CUDA_SUCCESS);
    for (unsigned n = 0; n < words; n += 256) ++values_[n];
  }
  // Adds up the first `added` of each eighth element.
  void expect_sums(unsigned added, unsigned sum) {
    const unsigned on_other = stand_in::calls("launches on 1");
    void* parameters[] = {&flags_, &array_, &sums_, &added};
    ASSERT_EQ(cuLaunchKernel(adds_up_, threads / 64, 1, 1, 64, 1, 1, 0, nullptr, parameters, nullptr), CUDA_SUCCESS);
    std::vector<unsigned> sums(threads);
    ASSERT_EQ(cuMemcpyDtoH(sums.data(), sums_, threads * sizeof(unsigned)), CUDA_SUCCESS);
    EXPECT_EQ(sums.front(), sum);
    EXPECT_EQ(sums.back(), sum);
    EXPECT_EQ(stand_in::calls("launches on 1"), on_other + 1) << "the launch was not spread";
  }
  void expect_values() const {
    std::vector<unsigned> there(words);
    ASSERT_EQ(cuMemcpyDtoH(there.data(), array_, bytes), CUDA_SUCCESS);
    EXPECT_TRUE(there == values_);
  }
  [[nodiscard]] void* memory() const { return reinterpret_cast<void*>(array_); }

  CUmodule module_ = nullptr;
  CUfunction stays_ = nullptr, adds_up_ = nullptr;
  CUdeviceptr array_ = 0, flags_ = 0, sums_ = 0;
  std::vector<unsigned> values_;
};

// Waits until it is released.
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
  /// then() runs when the writes are queued, and does not wait for them.
  void expect_copies_with_writes_on(
      CUcontext other, CUstream (*make)(), const std::function<void()>& then = [] {});
  void expect_copies_while_another_context_ends(CUstream (*stream)());
  /// A context that the program makes itself on the first device.
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

// A copy is made while a stream of another context writes elements that the launch does not read. Later ones do.
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
    ASSERT_NO_FATAL_FAILURE(expect_sums(added_up, added_up)) << "a context that has ended has no writes";
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
// The calls of libraries that use a primary context for a while.
TEST_F(SpreadCopies, FollowWritesAlsoWhenAPrimaryContextIsReleased) {
  const CUcontext own = made();
  ASSERT_NO_FATAL_FAILURE(expect_copies_with_writes_on(own, legacy, [&] {
    CUcontext same = nullptr;
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&same, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuDevicePrimaryCtxRelease(0), CUDA_SUCCESS);
  }));
  ASSERT_EQ(cuCtxDestroy(own), CUDA_SUCCESS);
}

// The work reads an element of an array that a launch lets move, because nobody has written it.
TEST_F(SpreadCopies, AnArrayMovesAfterTheWorkOfContextsOfTheProgram) {
  const CUcontext own = made();
  ASSERT_EQ(cuCtxSetCurrent(own), CUDA_SUCCESS);
  CUdeviceptr read = 0;
  ASSERT_EQ(cuMemAlloc(&read, sizeof(unsigned)), CUDA_SUCCESS);
  static std::atomic<bool> done{false};
  static bool moved = false, was_done = false;
  static std::function<void()> moves = [] {
    moved = true;
    was_done = done;
  };
  stand_in::meanwhile("cuMemUnmap", moves);
  stand_in::pause(true);
  ASSERT_EQ(cuMemcpyDtoDAsync(read, array_ + bytes - sizeof(unsigned), sizeof(unsigned), nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSetCurrent(first_), CUDA_SUCCESS);
  const auto goes_on = std::async(std::launch::async, [] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    done = true;
    stand_in::pause(false);
  });
  ASSERT_NO_FATAL_FAILURE(launch());
  EXPECT_TRUE(moved);
  EXPECT_TRUE(was_done);
  ASSERT_EQ(cuCtxDestroy(own), CUDA_SUCCESS);
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
