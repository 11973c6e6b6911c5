// hpe run --oversubscribe --scope auto (HPE_OVERSUBSCRIBE=on, HPE_DEVICE_MEMORY=16M): kernels of machine code follow
// pointers in memory, so data moves to zero-copy memory and back at the same addresses.
#include <cuda.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <ctime>
#include <initializer_list>
#include <limits>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "hpe/hpe.h"
#include "interpose/gpu/oversubscribed/writer_first_mutex.h"
#include "tests/interpose/gpu/driver_under_test.h"

namespace {

constexpr std::size_t mebibyte = std::size_t{1} << 20;
constexpr std::size_t bytes = 2 * mebibyte;
constexpr std::size_t stride = 64 << 10;  // kernels use one word in 64 KiB

void add_one(CUdeviceptr array) {
  for (std::size_t at = 0; at < bytes; at += stride) ++*reinterpret_cast<unsigned*>(stand_in::memory(array + at));
}
// Adds 1 to the words of the array in the first parameter.
const stand_in::kernel add_kernel{[](const std::uint64_t* parameters) { add_one(parameters[0]); }, 1};
// The first parameter is a table of as many arrays as the second parameter says; adds 1 to their words.
const stand_in::kernel table_kernel{[](const std::uint64_t* parameters) {
                                      const auto* const table =
                                          reinterpret_cast<const CUdeviceptr*>(stand_in::memory(parameters[0]));
                                      std::for_each(table, table + parameters[1], add_one);
                                    },
                                    2};
const stand_in::kernel no_work{[](const std::uint64_t*) {}, 1};

CUresult launch(const stand_in::kernel& kernel, std::vector<std::uint64_t> parameters, CUstream stream = nullptr) {
  std::vector<void*> each;
  for (std::uint64_t& p : parameters) each.push_back(&p);
  auto* const function = reinterpret_cast<CUfunction>(const_cast<stand_in::kernel*>(&kernel));
  return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, each.data(), nullptr);
}

class OversubscribedMoves : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NO_FATAL_FAILURE(stand_in::enter_device_0()); }
  void TearDown() override {
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    for (const CUdeviceptr each : arrays_) EXPECT_EQ(cuMemFree(each), CUDA_SUCCESS);
  }
  void allocate(std::size_t count) {
    for (unsigned n = 0; n < count; ++n) {
      CUdeviceptr made = 0;
      ASSERT_EQ(cuMemAlloc(&made, bytes), CUDA_SUCCESS);
      arrays_.push_back(made);
      expected_.push_back(n);
      ASSERT_EQ(cuMemsetD32(made, n, bytes / 4), CUDA_SUCCESS);
    }
  }
  static void check(CUdeviceptr array, unsigned expected) {
    std::vector<unsigned> there(bytes / 4);
    ASSERT_EQ(cuMemcpyDtoH(there.data(), array, bytes), CUDA_SUCCESS);
    for (std::size_t at = 0; at < bytes / 4; at += stride / 4) ASSERT_EQ(there[at], expected) << at;
  }
  void check() {
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    for (std::size_t n = 0; n < arrays_.size(); ++n) ASSERT_NO_FATAL_FAILURE(check(arrays_[n], expected_[n])) << n;
  }

  std::vector<CUdeviceptr> arrays_;
  std::vector<unsigned> expected_;
};

// Twelve arrays do not fit. Each call of the driver that a move makes fails once with each number of calls before it.
TEST_F(OversubscribedMoves, BytesStayIfMovesFail) {
  ASSERT_NO_FATAL_FAILURE(allocate(12));
  const auto fail = stand_in::find<stand_in::fail_function>("stand_in_fail");
  unsigned failures = 0;
  for (const char* const entry : {"cuMemCreate", "cuMemMap", "cuMemSetAccess"}) {
    for (unsigned passed = 0; passed < 24; ++passed) {
      fail(entry, passed, CUDA_ERROR_OUT_OF_MEMORY);
      for (std::size_t n = 0; n < arrays_.size(); ++n) {
        const CUresult result = launch(add_kernel, {arrays_[n]});
        result == CUDA_SUCCESS ? ++expected_[n] : ++failures;
        ASSERT_TRUE(result == CUDA_SUCCESS || result == CUDA_ERROR_OUT_OF_MEMORY) << entry << ' ' << passed;
      }
    }
    fail(entry, std::numeric_limits<unsigned>::max(), CUDA_ERROR_OUT_OF_MEMORY);
    ASSERT_NO_FATAL_FAILURE(check()) << entry;
  }
  RecordProperty("refused_launches", std::to_string(failures));
}

// One thread launches kernels that use all arrays by pointers in memory, and kernels that name arrays in turn. Two
// other threads allocate, use and free arrays, in captured work too.
TEST_F(OversubscribedMoves, OtherThreadsAllocateCaptureAndFreeMeanwhile) {
  ASSERT_NO_FATAL_FAILURE(allocate(10));
  CUdeviceptr table = 0;
  ASSERT_EQ(cuMemAlloc(&table, bytes), CUDA_SUCCESS);
  ASSERT_EQ(cuMemcpyHtoD(table, arrays_.data(), arrays_.size() * sizeof(CUdeviceptr)), CUDA_SUCCESS);
  CUcontext context = nullptr;
  ASSERT_EQ(cuCtxGetCurrent(&context), CUDA_SUCCESS);
  const auto other = [&](unsigned first, bool captures) {
    ASSERT_EQ(cuCtxSetCurrent(context), CUDA_SUCCESS);
    CUstream stream = nullptr;
    ASSERT_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    for (unsigned n = first; n < first + 25; ++n) {
      CUdeviceptr mine = 0;
      ASSERT_EQ(cuMemAlloc(&mine, bytes), CUDA_SUCCESS);
      ASSERT_EQ(cuMemsetD32Async(mine, n, bytes / 4, stream), CUDA_SUCCESS);
      ASSERT_EQ(launch(add_kernel, {mine}, stream), CUDA_SUCCESS);
      CUgraph graph = nullptr;
      CUgraphExec instance = nullptr;
      if (captures) {
        ASSERT_EQ(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
        ASSERT_EQ(launch(add_kernel, {mine}, stream), CUDA_SUCCESS);
        ASSERT_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
        ASSERT_EQ(cuGraphInstantiate(&instance, graph, 0), CUDA_SUCCESS);
        ASSERT_EQ(cuGraphLaunch(instance, stream), CUDA_SUCCESS);
      }
      ASSERT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
      ASSERT_NO_FATAL_FAILURE(check(mine, n + (captures ? 2 : 1)));
      if (captures) {
        ASSERT_EQ(cuGraphExecDestroy(instance), CUDA_SUCCESS);
        ASSERT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
      }
      ASSERT_EQ(cuMemFree(mine), CUDA_SUCCESS);
    }
    EXPECT_EQ(cuStreamDestroy(stream), CUDA_SUCCESS);
  };
  std::thread one(other, 1000, false), two(other, 2000, true);
  for (unsigned n = 0; n < 120; ++n) {
    EXPECT_EQ(launch(add_kernel, {arrays_[n % arrays_.size()]}), CUDA_SUCCESS);
    ++expected_[n % arrays_.size()];
    if (n % 3 != 0) continue;
    EXPECT_EQ(launch(table_kernel, {table, arrays_.size()}), CUDA_SUCCESS);
    for (unsigned& each : expected_) ++each;
  }
  one.join();
  two.join();
  ASSERT_NO_FATAL_FAILURE(check());
  EXPECT_EQ(cuMemFree(table), CUDA_SUCCESS);
}

// HPE_DEVICE_MEMORY=192M: data moves in groups of 6 MiB, that is, one array of two pieces (4 MiB and 2 MiB). In each
// period, a third of the arrays comes in. A call that changes mappings takes the driver about as long for two
// neighbouring pieces as for one.
class OversubscribedGroups : public OversubscribedMoves {};

TEST_F(OversubscribedGroups, MovesShareCallsOfTheDriver) {
  constexpr std::size_t size = 6 * mebibyte, count = 48, pieces = 2;
  for (unsigned n = 0; n < count; ++n) {
    CUdeviceptr made = 0;
    ASSERT_EQ(cuMemAlloc(&made, size), CUDA_SUCCESS);
    arrays_.push_back(made);
    ASSERT_EQ(cuMemsetD32(made, n, size / 4), CUDA_SUCCESS);
    expected_.push_back(n);
  }
  const auto run = [&](int periods) {
    for (std::size_t n = 0; n < static_cast<std::size_t>(periods) * count; ++n) {
      ASSERT_EQ(launch(add_kernel, {arrays_[n % count]}), CUDA_SUCCESS);
      ++expected_[n % count];
    }
  };
  const auto moved = [] {
    hpeStatistics now{};
    EXPECT_EQ(hpeGetStatistics(&now), HPE_SUCCESS);
    return static_cast<double>(now.bytes_brought_in + now.bytes_evicted) * pieces / size;
  };
  const auto calls_of = [](std::initializer_list<const char*> entries) {
    unsigned sum = 0;
    for (const char* const entry : entries) sum += stand_in::calls(entry);
    return sum;
  };
  const auto mappings = [&] { return calls_of({"cuMemUnmap", "cuMemMap", "cuMemSetAccess"}); };
  const auto memory = [&] {
    return calls_of({"cuMemCreate", "cuMemRelease", "cuMemAddressReserve", "cuMemAddressFree"});
  };
  const auto waits = [&] { return calls_of({"cuStreamSynchronize"}); };
  ASSERT_NO_FATAL_FAILURE(run(4));
  const double moved_before = moved();
  const unsigned mappings_before = mappings(), memory_before = memory(), waits_before = waits();
  ASSERT_NO_FATAL_FAILURE(run(4));
  const double moves = moved() - moved_before;
  RecordProperty("moves", std::to_string(moves));
  RecordProperty("mappings", std::to_string(mappings() - mappings_before));
  RecordProperty("memory", std::to_string(memory() - memory_before));
  RecordProperty("waits", std::to_string(waits() - waits_before));
  EXPECT_GE(moves, 4 * 8 * 4);  // 16 arrays do not fit
  EXPECT_LE(mappings() - mappings_before, 2.2 * moves) << "3 calls for a piece without neighbours";
  EXPECT_LE(memory() - memory_before, 0.1 * moves);
  EXPECT_LE(waits() - waits_before, 0.6 * moves) << "two pieces share a wait for their copies";
  ASSERT_NO_FATAL_FAILURE(check());
}

// Launches for whose data there is no host memory are refused, the message names the limit, and no bytes change.
class LittleHostMemory : public OversubscribedMoves {
 protected:
  void expect_refused(const std::string& limit) {
    testing::internal::CaptureStderr();
    ASSERT_NO_FATAL_FAILURE(allocate(24));  // 48 MiB
    unsigned refused = 0;
    for (std::size_t n = 0; n < 3 * arrays_.size(); ++n) {
      const CUresult result = launch(add_kernel, {arrays_[n % arrays_.size()]});
      result == CUDA_SUCCESS ? ++expected_[n % arrays_.size()] : ++refused;
      ASSERT_TRUE(result == CUDA_SUCCESS || result == CUDA_ERROR_OUT_OF_MEMORY) << n << ": " << result;
    }
    ASSERT_NO_FATAL_FAILURE(check());
    const std::string told = testing::internal::GetCapturedStderr();
    EXPECT_GT(refused, 0U);
    EXPECT_NE(told.find(limit), std::string::npos) << limit << " is not in\n" << told;
    for (; arrays_.size() > 6; arrays_.pop_back()) ASSERT_EQ(cuMemFree(arrays_.back()), CUDA_SUCCESS);
    for (std::size_t n = 0; n < arrays_.size(); ++n) {
      ASSERT_EQ(launch(add_kernel, {arrays_[n]}), CUDA_SUCCESS) << "there is enough memory now";
      ++expected_[n];
    }
    ASSERT_NO_FATAL_FAILURE(check());
  }
};

class OversubscribedHostLimit : public LittleHostMemory {
 protected:
  void launch_each() {
    for (std::size_t n = 0; n < arrays_.size(); ++n) {
      ASSERT_EQ(launch(add_kernel, {arrays_[n]}), CUDA_SUCCESS) << n;
      ++expected_[n];
    }
  }
  static hpeStatistics statistics() {
    hpeStatistics now{};
    EXPECT_EQ(hpeGetStatistics(&now), HPE_SUCCESS);
    return now;
  }
};
class OversubscribedLockedLimit : public LittleHostMemory {
 protected:
  void SetUp() override {
    rlimit limit{};
    ASSERT_EQ(::getrlimit(RLIMIT_MEMLOCK, &limit), 0);
    limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 8 * mebibyte);  // as STAND_IN_HOST_MEMORY
    ASSERT_EQ(::setrlimit(RLIMIT_MEMLOCK, &limit), 0);
    LittleHostMemory::SetUp();
  }
};

TEST_F(OversubscribedHostLimit, IsNamedAndNothingIsLost) { expect_refused("HPE_HOST_MEMORY"); }

// Fills and copies need only their own data, so hpe moves the other data to the spill file. Kernels may use all data,
// which devices and host memory together do not hold.
TEST_F(OversubscribedHostLimit, FillsAndCopiesGoOnAndLaunchesAreRefusedBeforeDataMoves) {
  ASSERT_NO_FATAL_FAILURE(allocate(8));
  ASSERT_NO_FATAL_FAILURE(launch_each());
  ASSERT_NO_FATAL_FAILURE(allocate(24));
  ASSERT_NO_FATAL_FAILURE(check());
  const hpeStatistics before = statistics();
  EXPECT_GT(before.bytes_spilled, 0U);
  testing::internal::CaptureStderr();
  EXPECT_EQ(launch(add_kernel, {arrays_[0]}), CUDA_ERROR_OUT_OF_MEMORY);
  const std::string told = testing::internal::GetCapturedStderr();
  for (const char* const part : {"HPE_HOST_MEMORY leaves", "--scope args"})
    EXPECT_NE(told.find(part), std::string::npos) << part << " is not in\n" << told;
  EXPECT_EQ(told.find("HPE_HOST_MEMORY leaves"), told.rfind("HPE_HOST_MEMORY leaves")) << "twice: " << told;
  const hpeStatistics after = statistics();
  EXPECT_EQ(after.bytes_evicted, before.bytes_evicted);
  EXPECT_EQ(after.bytes_brought_in, before.bytes_brought_in);
  for (std::size_t n = 0; n < arrays_.size(); ++n) {
    ASSERT_EQ(cuMemcpyDtoD(arrays_[n], arrays_[(n * 5 + 3) % arrays_.size()], bytes), CUDA_SUCCESS) << n;
    expected_[n] = expected_[(n * 5 + 3) % arrays_.size()];
  }
  ASSERT_NO_FATAL_FAILURE(check());
  for (; arrays_.size() > 12; expected_.pop_back(), arrays_.pop_back())
    ASSERT_EQ(cuMemFree(arrays_.back()), CUDA_SUCCESS);
  for (int round = 0; round < 3; ++round) ASSERT_NO_FATAL_FAILURE(launch_each());
  ASSERT_NO_FATAL_FAILURE(check());
}

// Of twelve arrays, at least four are in zero-copy memory, which leaves 4 MiB for host memory.
TEST_F(OversubscribedHostLimit, HostMemoryTakesThePlaceOfZeroCopyMemory) {
  ASSERT_NO_FATAL_FAILURE(allocate(12));
  ASSERT_NO_FATAL_FAILURE(launch_each());
  void* host = nullptr;
  ASSERT_EQ(hpeMallocHost(&host, 8 * mebibyte), HPE_SUCCESS) << hpeGetLastErrorMessage();
  ASSERT_NO_FATAL_FAILURE(check());
  EXPECT_EQ(launch(add_kernel, {arrays_[0]}), CUDA_ERROR_OUT_OF_MEMORY);
  ASSERT_EQ(hpeFree(host), HPE_SUCCESS);
  ASSERT_NO_FATAL_FAILURE(launch_each());
  ASSERT_NO_FATAL_FAILURE(check());
}
TEST_F(OversubscribedLockedLimit, IsNamedAndNothingIsLost) { expect_refused("RLIMIT_MEMLOCK"); }

class OversubscribedCost : public OversubscribedMoves {
 protected:
  // Returns the processor time of a launch in the fastest of many batches, in nanoseconds.
  [[nodiscard]] double time_of_launch() const {
    const auto now = [] {
      timespec t{};
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
      return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
    };
    double least = std::numeric_limits<double>::infinity();
    for (int batch = 0; batch < 20; ++batch) {
      constexpr int launches = 50;
      const double begin = now();
      for (int n = 0; n < launches; ++n) EXPECT_EQ(launch(no_work, {arrays_[0]}), CUDA_SUCCESS);
      least = std::min(least, (now() - begin) / launches);
      EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    }
    return least;
  }
};

// Such a launch may use all allocations, but its cost does not depend on their number. Other programs can disturb a
// measurement, so the test compares the fastest of up to four.
TEST_F(OversubscribedCost, ALaunchCostsTheSameWithFewAndManyAllocations) {
  double few = std::numeric_limits<double>::infinity(), many = few;
  const auto free_all = [&] {
    for (const CUdeviceptr each : std::exchange(arrays_, {})) EXPECT_EQ(cuMemFree(each), CUDA_SUCCESS);
  };
  // Once device memory has been too small, hpe records which data each launch uses.
  ASSERT_NO_FATAL_FAILURE(allocate(12));
  for (const CUdeviceptr each : arrays_) ASSERT_EQ(launch(no_work, {each}), CUDA_SUCCESS);
  free_all();
  for (int round = 0; round < 4 && (round == 0 || many > 2 * few); ++round) {
    ASSERT_NO_FATAL_FAILURE(allocate(3));
    few = std::min(few, time_of_launch());
    ASSERT_NO_FATAL_FAILURE(allocate(60));
    many = std::min(many, time_of_launch());
    free_all();
  }
  EXPECT_LE(many, 2 * few);
  RecordProperty("few", std::to_string(few));
  RecordProperty("many", std::to_string(many));
}

// Without the rule, this test does not end.
TEST(WriterFirstMutex, ReadersWaitWhileAThreadWaitsForWriting) {
  hpe::cuda_hooks::writer_first_mutex both;
  both.lock_shared();
  std::thread writer([&] { const std::lock_guard whole(both); });
  while (both.try_lock_shared()) {
    both.unlock_shared();
    std::this_thread::yield();
  }
  both.unlock_shared();
  writer.join();
  EXPECT_TRUE(both.try_lock_shared());
  both.unlock_shared();
}

}  // namespace
