// A program that is spread over the stand-in's two devices (HPE_SPREAD=1). Its arrays move while it works, and no write
// may be lost.
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "hpe/hpe.h"
#include "tests/interpose/gpu/failing_memory.h"
#include "tests/interpose/gpu/spread_fixture.h"
#include "tests/shell.h"

namespace {

using stand_in::added_up;
using stand_in::bytes;
using stand_in::Spread;
using stand_in::threads;
using stand_in::words;

TEST_F(Spread, CallsOfLibcFillAnArray) {
  const int file = ::memfd_create("values", MFD_CLOEXEC);
  ASSERT_EQ(::pwrite(file, values_.data(), bytes, 0), static_cast<ssize_t>(bytes));
  // Reads the whole array from the file; for the driver, the array consists of two allocations.
  EXPECT_EQ(::pread(file, memory(), bytes, 0), static_cast<ssize_t>(bytes));
  ASSERT_NO_FATAL_FAILURE(launch());
  ASSERT_NO_FATAL_FAILURE(come_home());
  expect_values();
  ::close(file);
}

TEST_F(Spread, CpuCodeFillsAnArray) {
  std::copy(values_.begin(), values_.end(), static_cast<unsigned*>(memory()));
  ASSERT_NO_FATAL_FAILURE(launch());
  ASSERT_NO_FATAL_FAILURE(come_home());
  expect_values();
}

// An array is distributed again only if later launches gain more from it than all other launches lose.
TEST_F(Spread, AnArrayThatHasComeHomeStaysThere) {
  ASSERT_EQ(cuMemcpyHtoD(array_, values_.data(), bytes), CUDA_SUCCESS);
  ASSERT_NO_FATAL_FAILURE(come_home());
  const unsigned mapped = stand_in::calls("cuMemMap");
  for (int n = 0; n < 3; ++n) {
    ASSERT_NO_FATAL_FAILURE(launch());
    ASSERT_NO_FATAL_FAILURE(come_home());
  }
  EXPECT_EQ(stand_in::calls("cuMemMap"), mapped);
  EXPECT_EQ(device_of(array_ + bytes - 4), 0);
  expect_values();
  ASSERT_NO_FATAL_FAILURE(deal_out());
  expect_values();
}

TEST_F(Spread, GraphsBringTheirArraysHome) {
  ASSERT_EQ(cuMemcpyHtoD(array_, values_.data(), bytes), CUDA_SUCCESS);
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUgraphExec instance = nullptr;
  unsigned count = words;
  void* parameters[] = {&array_, &count};
  CUDA_KERNEL_NODE_PARAMS kernel{};
  kernel.func = stays_;
  kernel.gridDimX = words / 256 / 64;
  kernel.gridDimY = kernel.gridDimZ = kernel.blockDimY = kernel.blockDimZ = 1;
  kernel.blockDimX = 64;
  kernel.kernelParams = parameters;
  ASSERT_EQ(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphAddKernelNode(&node, graph, nullptr, 0, &kernel), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphInstantiate(&instance, graph, 0), CUDA_SUCCESS);
  EXPECT_EQ(device_of(array_ + bytes - 4), 1);
  int launches = 0;
  for (; launches < 20 && device_of(array_ + bytes - 4) != 0; ++launches) {
    ASSERT_EQ(cuGraphLaunch(instance, nullptr), CUDA_SUCCESS);
    for (unsigned n = 0; n < words; n += 256) ++values_[n];
  }
  EXPECT_EQ(device_of(array_ + bytes - 4), 0);
  EXPECT_GT(launches, 1);
  expect_values();
  EXPECT_EQ(cuGraphExecDestroy(instance), CUDA_SUCCESS);
  EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
}

// While the array moves, its last bytes have no memory for a moment; at this moment, another thread copies to them.
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
  stand_in::meanwhile("cuMemUnmap", copy);
  ASSERT_NO_FATAL_FAILURE(come_home());
  ASSERT_TRUE(moved);
  EXPECT_EQ(copied.get(), CUDA_SUCCESS);
  EXPECT_EQ(device_of(array_ + bytes - 4), 0);
}

// Some kernels read a little beyond the end of an array and ignore the value. With the driver's own memory, such a read
// does not fail.
TEST_F(Spread, ThereIsMemoryBehindALargeArray) {
  constexpr std::size_t large = std::size_t{64} << 20;
  CUdeviceptr made = 0;
  ASSERT_EQ(cuMemAlloc(&made, large), CUDA_SUCCESS);
  EXPECT_EQ(device_of(made + large - 4), 0);
  EXPECT_EQ(device_of(made + large + (1 << 20) - 4), 0);
  CUdeviceptr base = 0;
  std::size_t size = 0;
  EXPECT_EQ(cuMemGetAddressRange(&base, &size, made), CUDA_SUCCESS);
  EXPECT_EQ(size, large);
  EXPECT_EQ(cuMemFree(made), CUDA_SUCCESS);
}

TEST_F(Spread, AResetFreesTheMemory) {
  for (int round = 0; round < 2; ++round) {
    CUstream stream = nullptr;
    ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_DEFAULT), CUDA_SUCCESS);
    ASSERT_EQ(cuMemsetD32Async(array_, 1, words, stream), CUDA_SUCCESS);
    ASSERT_NO_FATAL_FAILURE(expect_sums(added_up, added_up));
    ASSERT_EQ(cuDevicePrimaryCtxReset(0), CUDA_SUCCESS);
    ASSERT_NO_FATAL_FAILURE(stand_in::enter_device_0());
    CUdeviceptr elsewhere = 0;  // the next array gets another address, so hpe decides without the earlier decisions
    ASSERT_EQ(cuMemAlloc(&elsewhere, bytes), CUDA_SUCCESS);
    ASSERT_NO_FATAL_FAILURE(prepare());
    ASSERT_EQ(cuMemFree(elsewhere), CUDA_SUCCESS);
  }
}

// The driver frees the memory of a context with the context, and may give its addresses to other memory.
TEST_F(Spread, DescriptionsOfTheDriversMemoryEndWithAContext) {
  const CUdeviceptr first_flags = flags_;
  const auto queries = [&] {
    const unsigned before = stand_in::calls("cuPointerGetAttribute");
    expect_sums(added_up, added_up);
    return stand_in::calls("cuPointerGetAttribute") - before;
  };
  ASSERT_EQ(cuMemsetD32(array_, 1, words), CUDA_SUCCESS);
  queries();
  EXPECT_EQ(queries(), 0U) << "the test needs memory that hpe knows";

  CUcontext context = nullptr;
  ASSERT_EQ(cuCtxCreate(&context, nullptr, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxDestroy(context), CUDA_SUCCESS);
  ASSERT_NO_FATAL_FAILURE(stand_in::enter_device_0());
  EXPECT_GT(queries(), 0U);

  ASSERT_EQ(cuDevicePrimaryCtxReset(0), CUDA_SUCCESS);
  ASSERT_NO_FATAL_FAILURE(stand_in::enter_device_0());
  ASSERT_NO_FATAL_FAILURE(prepare());
  ASSERT_EQ(cuMemsetD32(array_, 1, words), CUDA_SUCCESS);
  queries();
  EXPECT_EQ(queries(), 0U);
  const CUdeviceptr second_flags = std::exchange(flags_, first_flags);  // which the stand-in has not freed
  ASSERT_NO_FATAL_FAILURE(set_flags());
  EXPECT_GT(queries(), 0U);
  flags_ = second_flags;
}

// The launch takes a millisecond, but the predicted time is a fraction of a millisecond.
TEST_F(Spread, ALaunchThatIsMeasuredToBeSlowerRunsOnOneDevice) {
  auto* const take = stand_in::find<stand_in::take_function>("stand_in_take");
  ASSERT_EQ(cuMemsetD32(array_, 1, words), CUDA_SUCCESS);
  take(1);
  ASSERT_NO_FATAL_FAILURE(expect_sums(added_up, added_up));  // takes more than three times the predicted time
  const unsigned on_other = stand_in::calls("launches on 1");
  unsigned added = added_up;
  void* parameters[] = {&flags_, &array_, &sums_, &added};
  EXPECT_EQ(cuLaunchKernel(adds_up_, threads / 64, 1, 1, 64, 1, 1, 0, nullptr, parameters, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(stand_in::calls("launches on 1"), on_other);
}

// Each thread has its own default stream, which ends with the thread; hpe's streams on the other device are reused for
// the next thread.
TEST_F(Spread, ThreadsLaunchOnTheirOwnStreams) {
  ASSERT_EQ(cuMemsetD32(array_, 1, words), CUDA_SUCCESS);
  const auto launch_in_thread = [&] {
    std::thread([&] {
      stand_in::enter_device_0();
      expect_sums(added_up, added_up, CU_STREAM_PER_THREAD);
    }).join();
  };
  launch_in_thread();
  const unsigned made = stand_in::calls("cuStreamCreateWithPriority");
  launch_in_thread();
  launch_in_thread();
  EXPECT_EQ(stand_in::calls("cuStreamCreateWithPriority"), made);
}

TEST_F(Spread, FreedMemoryStaysMappedForTheNextAllocation) {
  constexpr std::size_t small = std::size_t{1} << 20;
  CUdeviceptr first = 0, second = 0;
  std::size_t free_before = 0, free_after = 0, total = 0;
  ASSERT_EQ(cuMemGetInfo(&free_before, &total), CUDA_SUCCESS);
  ASSERT_EQ(cuMemAlloc(&first, small), CUDA_SUCCESS);
  ASSERT_EQ(cuMemFree(first), CUDA_SUCCESS);
  ASSERT_EQ(cuMemGetInfo(&free_after, &total), CUDA_SUCCESS);
  EXPECT_GE(free_after + small, free_before);
  const unsigned mapped = stand_in::calls("cuMemMap"), unmapped = stand_in::calls("cuMemUnmap");
  for (int n = 0; n < 10; ++n) {
    ASSERT_EQ(cuMemAlloc(&second, small), CUDA_SUCCESS);
    EXPECT_EQ(second, first);
    EXPECT_EQ(cuMemsetD32(second, 5, small / 4), CUDA_SUCCESS);
    ASSERT_EQ(cuMemFree(second), CUDA_SUCCESS);
    EXPECT_EQ(cuMemFree(second), CUDA_ERROR_INVALID_VALUE) << "it is freed";
  }
  EXPECT_EQ(stand_in::calls("cuMemMap"), mapped);
  EXPECT_EQ(stand_in::calls("cuMemUnmap"), unmapped);
  // hpe unmaps freed memory if a new allocation needs the space.
  ASSERT_EQ(cuMemGetInfo(&free_before, &total), CUDA_SUCCESS);
  CUdeviceptr most = 0;
  EXPECT_EQ(cuMemAlloc(&most, free_before / 4096 * 4096 - (std::size_t{8} << 20)), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree(most), CUDA_SUCCESS);
}

// Arrays of less than 16 MiB are on the first device. So the first device has too little memory for its half of a large
// array.
TEST_F(Spread, AnArrayLiesWhereThereIsRoom) {
  constexpr std::size_t mebibyte = std::size_t{1} << 20;
  std::vector<CUdeviceptr> small(8);
  for (CUdeviceptr& each : small) ASSERT_EQ(cuMemAlloc(&each, 14 * mebibyte), CUDA_SUCCESS);
  EXPECT_EQ(device_of(small.back()), 0);
  CUdeviceptr large = 0, none = 0;
  ASSERT_EQ(cuMemAlloc(&large, 210 * mebibyte), CUDA_SUCCESS);
  EXPECT_EQ(device_of(large), 0);
  EXPECT_EQ(device_of(large + 100 * mebibyte), 1);
  EXPECT_EQ(cuMemsetD8(large, 1, 210 * mebibyte), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAlloc(&none, 210 * mebibyte), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuMemFree(large), CUDA_SUCCESS);
  for (const CUdeviceptr each : small) EXPECT_EQ(cuMemFree(each), CUDA_SUCCESS);
}

// The driver maps each piece by a call of its own. Without eviction, many pieces have no advantage.
TEST_F(Spread, ALargeArrayHasFewPieces) {
  CUdeviceptr large = 0;
  const unsigned before = stand_in::calls("cuMemMap");
  ASSERT_EQ(cuMemAlloc(&large, std::size_t{150} << 20), CUDA_SUCCESS);
  EXPECT_LE(stand_in::calls("cuMemMap") - before, 64U);
  EXPECT_EQ(cuMemsetD8(large, 1, std::size_t{150} << 20), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree(large), CUDA_SUCCESS);
}

// The driver's queue may be full for a long time, for example if a kernel waits for an action of another thread.
TEST_F(Spread, ALaunchThatWaitsInTheDriverHoldsUpNoOtherMemory) {
  using namespace std::chrono_literals;
  ASSERT_EQ(cuMemsetD32(array_, 1, words), CUDA_SUCCESS);
  std::future<void> others;
  std::future_status waited = std::future_status::timeout;
  std::function<void()> meanwhile = [&] {
    others = std::async(std::launch::async, [&] {
      stand_in::enter_device_0();
      CUdeviceptr made = 0, base = 0;
      std::size_t size = 0;
      unsigned type = 0;
      EXPECT_EQ(cuMemAlloc(&made, bytes), CUDA_SUCCESS);
      EXPECT_EQ(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, array_), CUDA_SUCCESS);
      EXPECT_EQ(cuMemGetAddressRange(&base, &size, array_ + 8), CUDA_SUCCESS);
      EXPECT_EQ(base, array_);
      EXPECT_EQ(cuMemsetD32(made, 2, words), CUDA_SUCCESS);
      EXPECT_EQ(cuMemFree(made), CUDA_SUCCESS);
    });
    waited = others.wait_for(5s);
  };
  stand_in::meanwhile("cuLaunchKernel", meanwhile);
  ASSERT_NO_FATAL_FAILURE(expect_sums(added_up, added_up));
  EXPECT_EQ(waited, std::future_status::ready);
  others.wait();
}

TEST_F(Spread, ALaunchWhosePartsAreRefusedRunsOnOneDevice) {
  auto* const limit = stand_in::find<stand_in::limit_function>("stand_in_limit_parameters");
  ASSERT_EQ(cuMemsetD32(array_, 1, words), CUDA_SUCCESS);
  limit(28);  // the program's kernel has exactly this number of bytes of parameters
  const unsigned on_first = stand_in::calls("launches on 0");
  unsigned added = added_up;
  void* parameters[] = {&flags_, &array_, &sums_, &added};
  EXPECT_EQ(cuLaunchKernel(adds_up_, threads / 64, 1, 1, 64, 1, 1, 0, nullptr, parameters, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(stand_in::calls("launches on 0"), on_first + 1);
  limit(0);
  expect_sums(added_up, added_up);
}

// After the driver has queued a part, a call of the driver or an allocation of host memory fails. The launch must not
// be repeated, and the error must not suggest that nothing has run.
TEST_F(Spread, ALaunchThatCannotBeCompletedIsNotRepeated) {
  auto* const fail = stand_in::find<stand_in::fail_function>("stand_in_fail");
  unsigned added = added_up;
  void* parameters[] = {&flags_, &array_, &sums_, &added};
  unsigned failures = 0;
  const auto launch_with = [&](const std::string& what, const std::function<void()>& arm) {
    SCOPED_TRACE(what);
    const unsigned on_first = stand_in::calls("launches on 0"), on_other = stand_in::calls("launches on 1");
    std::function<void()> meanwhile = arm;
    stand_in::meanwhile("cuLaunchKernel", meanwhile);
    testing::internal::CaptureStderr();
    const CUresult result = cuLaunchKernel(adds_up_, threads / 64, 1, 1, 64, 1, 1, 0, nullptr, parameters, nullptr);
    (void)failing_memory::disarm();
    const std::string told = testing::internal::GetCapturedStderr();
    EXPECT_EQ(stand_in::calls("launches on 1"), on_other + 1);
    EXPECT_LE(stand_in::calls("launches on 0"), on_first + 1);
    if (result == CUDA_SUCCESS) {
      EXPECT_EQ(stand_in::calls("launches on 0"), on_first + 1);
    } else {
      ++failures;
      EXPECT_EQ(result, CUDA_ERROR_LAUNCH_FAILED);
      EXPECT_NE(told.find("kernel adds_up: "), std::string::npos) << told;
      EXPECT_NE(told.find(" of 2 parts of a launch were queued, and the launch cannot be completed: "),
                std::string::npos)
          << told;
    }
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  };
  launch_with("nothing fails", [] {});
  ASSERT_EQ(failures, 0U);
  for (unsigned n = 0; n < 4; ++n) {
    for (const char* const entry : {"cuStreamWaitEvent", "cuEventRecord", "cuEventCreate"}) {
      launch_with(entry + std::to_string(n), [=] { fail(entry, n, CUDA_ERROR_OUT_OF_MEMORY); });
      fail(entry, 0, CUDA_SUCCESS);
    }
    launch_with("memory " + std::to_string(n), [=] { failing_memory::arm(n + 1); });
  }
  EXPECT_GT(failures, 2U) << "the test must let launches fail";
  ASSERT_EQ(cuMemsetD32(array_, 1, words), CUDA_SUCCESS);
  expect_sums(added_up, added_up);
}

// The test exchanges the flags for memory of the driver's pool. The other GPU cannot use this memory if the driver
// refuses access to the pool.
TEST_F(Spread, ALaunchWithMemoryOfAPoolThatOtherGpusCannotUseRunsOnOneDevice) {
  ASSERT_EQ(cuMemsetD32(array_, 1, words), CUDA_SUCCESS);
  ASSERT_EQ(cuMemFree(flags_), CUDA_SUCCESS);
  ASSERT_EQ(cuMemAllocAsync(&flags_, threads * sizeof(unsigned), nullptr), CUDA_SUCCESS);
  ASSERT_NO_FATAL_FAILURE(set_flags());
  const unsigned asked = stand_in::calls("cuMemPoolSetAccess"), on_other = stand_in::calls("launches on 1");
  stand_in::fail("cuMemPoolSetAccess", CUDA_ERROR_INVALID_VALUE);
  unsigned added = added_up;
  void* parameters[] = {&flags_, &array_, &sums_, &added};
  EXPECT_EQ(cuLaunchKernel(adds_up_, threads / 64, 1, 1, 64, 1, 1, 0, nullptr, parameters, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(stand_in::calls("cuMemPoolSetAccess"), asked + 1);
  EXPECT_EQ(stand_in::calls("launches on 1"), on_other);
  expect_sums(added_up, added_up);
  EXPECT_EQ(stand_in::calls("cuMemPoolSetAccess"), asked + 2);
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

TEST_F(Spread, TheDriverRefusesLaunchesWithoutThreads) {
  unsigned added = added_up;
  void* parameters[] = {&flags_, &array_, &sums_, &added};
  EXPECT_EQ(cuLaunchKernel(adds_up_, 64, 1, 1, 0, 1, 1, 0, nullptr, parameters, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuLaunchKernel(stays_, 64, 0, 1, 64, 1, 1, 0, nullptr, parameters, nullptr), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Spread, SizesBeyondTheAddressSpaceAreRefused) {
  CUdeviceptr made = 0;
  std::size_t pitch = 0;
  testing::internal::CaptureStderr();
  for (const std::size_t size : {~std::size_t{0}, ~std::size_t{0} / 2, std::size_t{1} << 50})
    EXPECT_EQ(cuMemAlloc(&made, size), CUDA_ERROR_OUT_OF_MEMORY) << size;
  EXPECT_EQ(cuMemAllocPitch(&made, &pitch, std::size_t{1} << 31, std::size_t{1} << 31, 4), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(made, 0U);
  // hpe makes no list of the homes of so many granules.
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_NE(told.find("an allocation may have at most"), std::string::npos) << told;
  EXPECT_EQ(told.find("std::bad_alloc"), std::string::npos) << told;
}

TEST(SpreadOfMachineCode, IsToldAtTheFirstLaunch) {
  ASSERT_NO_FATAL_FAILURE(stand_in::enter_device_0());
  static const stand_in::kernel nothing{[](const std::uint64_t*) {}, 0};
  auto* const function = reinterpret_cast<CUfunction>(const_cast<stand_in::kernel*>(&nothing));
  testing::internal::CaptureStderr();
  for (int n = 0; n < 2; ++n)
    EXPECT_EQ(cuLaunchKernel(function, 2, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(
      testing::internal::GetCapturedStderr(),
      "hpe: hpe run --spread: nothing can be spread so far, because the program has loaded machine code only, and "
      "no PTX\n");
}

// Before launches have earned the other device, the program has used its own device only.
class SpreadPeers : public Spread {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(stand_in::enter_device_0());
    CUdeviceptr early = 0;
    ASSERT_EQ(cuMemAlloc(&early, bytes), CUDA_SUCCESS);
    ASSERT_EQ(cuMemsetD32(early, 0, words), CUDA_SUCCESS);
    static const stand_in::kernel nothing{[](const std::uint64_t*) {}, 0};
    auto* const function = reinterpret_cast<CUfunction>(const_cast<stand_in::kernel*>(&nothing));
    ASSERT_EQ(cuLaunchKernel(function, 2, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(stand_in::calls("cuCtxEnablePeerAccess"), 0U) << "peer access makes the driver's allocations slower";
    EXPECT_EQ(stand_in::calls("contexts of 1"), 0U) << "a context takes 0.1 s";
    EXPECT_EQ(cuMemFree(early), CUDA_SUCCESS);
    Spread::SetUp();
    EXPECT_EQ(stand_in::calls("contexts of 1"), 1U);
  }
};

TEST_F(SpreadPeers, ReachMemoryOfTheDriverFromTheFirstLaunchInPartsOn) {
  ASSERT_EQ(cuMemsetD32(array_, 1, words), CUDA_SUCCESS);
  ASSERT_NO_FATAL_FAILURE(expect_sums(added_up, added_up));
  EXPECT_EQ(stand_in::calls("cuCtxEnablePeerAccess"), 2U);
}

// A program may wait many thousand times after its last launch in parts.
TEST_F(Spread, WaitsAskForTheEndOfAPartOnce) {
  ASSERT_EQ(cuMemsetD32(array_, 1, words), CUDA_SUCCESS);
  ASSERT_NO_FATAL_FAILURE(expect_sums(added_up, added_up));
  ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  const unsigned asked = stand_in::calls("cuStreamSynchronize");
  for (int n = 0; n < 10; ++n) EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(stand_in::calls("cuStreamSynchronize"), asked);
}

// The first work of a GPU may be work that the program itself queues.
TEST(SpreadRecording, HasAStreamOnAGpuThatNothingHasUsed) {
  ASSERT_NO_FATAL_FAILURE(stand_in::enter_device_0());
  static const stand_in::kernel nothing{[](const std::uint64_t*) {}, 0};
  auto* const function = reinterpret_cast<CUfunction>(const_cast<stand_in::kernel*>(&nothing));
  ASSERT_EQ(cuLaunchKernel(function, 2, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(stand_in::calls("contexts of 1"), 0U);
  void* given = nullptr;
  const auto keep = [](void* stream, void* argument) {
    *static_cast<void**>(argument) = stream;
    return 0;
  };
  EXPECT_EQ(hpeEnqueue(1, keep, &given, nullptr, 0), HPE_SUCCESS) << hpeGetLastErrorMessage();
  EXPECT_NE(given, nullptr);
}

// The stand-in's devices share the machine's cores, so moves of arrays cost much time, and launches do not become
// faster if they are spread.
TEST(SpreadGain, IsToldAtTheEnd) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string() +
                              " --gtest_filter=Spread.AnArrayThatHasComeHomeStaysThere";
  const std::string line = "hpe: hpe run --spread: launches and moves of arrays took ";
  const outcome told = shell(program);
  EXPECT_NE(told.text.find(line), std::string::npos) << told.text;
  EXPECT_NE(told.text.find(" s more than launches on one GPU, in "), std::string::npos) << told.text;
  EXPECT_EQ(shell("HPE_LOG=error " + program).text.find(line), std::string::npos);
}

// The fixture's launches distribute an array. hpe stores the measured times of such a move, per range and per byte, in
// a cache folder, which only this test uses. The later process is this program again.
class SpreadPrice : public Spread {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder_);
    Spread::SetUp();
  }
  [[nodiscard]] std::filesystem::path file() const {
    std::error_code none;
    for (const auto& each : std::filesystem::directory_iterator(folder_, none))
      if (each.path().filename().string().starts_with("moves-")) return each.path();
    return {};
  }
  // Whether a process that finds this stored time distributes the array within twenty launches.
  [[nodiscard]] bool deals_out_with(const std::string& price) const {
    std::string key;
    std::getline(std::ifstream(file()), key);
    std::ofstream(file()) << key << '\n' << price << '\n';
    const outcome later =
        shell(std::filesystem::read_symlink("/proc/self/exe").string() + " --gtest_filter=Spread.CpuCodeFillsAnArray");
    EXPECT_NE(later.text.find("1 test from Spread"), std::string::npos) << later.text;
    EXPECT_EQ(later.text.find("nothing can be spread"), std::string::npos) << later.text;
    return later.text.find("the test needs arrays in parts") == std::string::npos;
  }

 private:
  const std::filesystem::path folder_ = std::filesystem::path(std::getenv("XDG_CACHE_HOME")) / "hpe";
};

TEST_F(SpreadPrice, IsKeptForLaterProcesses) {
  ASSERT_FALSE(file().empty());
  double of_a_range = 0, of_a_byte = 0;
  std::string key;
  std::ifstream kept(file());
  std::getline(kept, key);
  kept >> of_a_range >> of_a_byte;
  EXPECT_GT(of_a_range, 1e-6);
  EXPECT_GT(of_a_byte, 1e-13);
  EXPECT_FALSE(deals_out_with("0.1 1e-8"));
  EXPECT_TRUE(deals_out_with("1e-4 1e-11"));
  EXPECT_TRUE(deals_out_with("-0.1 1e-8")) << "a malformed price is ignored";
}

}  // namespace
