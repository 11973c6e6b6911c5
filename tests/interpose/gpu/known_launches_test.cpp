// Launches that stay on one GPU in a program that is spread over the stand-in's two devices (HPE_SPREAD=1). hpe submits
// only the first of several equal launches. If hpe then moves, copies or frees their arrays, it must wait for all of
// these launches.
#include <cuda.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "hpe/hpe.h"
#include "tests/interpose/gpu/driver_under_test.h"
#include "tests/interpose/gpu/failing_memory.h"
#include "tests/interpose/gpu/spread_fixture.h"

namespace {

using namespace std::chrono_literals;

// `raises` adds n to the first word of an array. `chases` does the same by a pointer in memory, so that hpe does not
// know which memory it uses.
const char* const code = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry raises(.param .u64 raises_0, .param .u32 raises_1) {
  .reg .b32 %r<4>; .reg .b64 %d<2>;
  ld.param.u64 %d0, [raises_0]; ld.param.u32 %r0, [raises_1];
  ld.global.u32 %r1, [%d0]; add.u32 %r2, %r1, %r0; st.global.u32 [%d0], %r2;
  ret;
}
.visible .entry chases(.param .u64 chases_0, .param .u32 chases_1) {
  .reg .b32 %r<4>; .reg .b64 %d<2>;
  ld.param.u64 %d0, [chases_0]; ld.param.u32 %r0, [chases_1]; ld.global.u64 %d1, [%d0];
  ld.global.u32 %r1, [%d1]; add.u32 %r2, %r1, %r0; st.global.u32 [%d1], %r2;
  ret;
}
)";

constexpr std::size_t bytes = std::size_t{1} << 20;

class SpreadKnown : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(stand_in::enter_device_0());
    ASSERT_EQ(cuModuleLoadData(&module_, code), CUDA_SUCCESS);
    ASSERT_EQ(cuModuleGetFunction(&raises_, module_, "raises"), CUDA_SUCCESS);
    ASSERT_EQ(cuModuleGetFunction(&chases_, module_, "chases"), CUDA_SUCCESS);
    ASSERT_EQ(cuMemAlloc(&array_, bytes), CUDA_SUCCESS);
    ASSERT_EQ(cuMemsetD32(array_, 0, bytes / 4), CUDA_SUCCESS);
    ASSERT_EQ(cuMemAlloc(&pointer_, bytes), CUDA_SUCCESS);
    // A kernel that the stand-in interprets can read pointers in memory only if they are addresses of the host.
    const std::byte* const target = stand_in::memory(array_);
    ASSERT_EQ(cuMemcpyHtoD(pointer_, &target, sizeof target), CUDA_SUCCESS);
    ASSERT_EQ(cuMemsetD32(pointer_ + sizeof array_, 0, bytes / 4 - 2), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    // The work above no longer matters to the tests: it has ended, and hpe knows this.
    unsigned word = 1;
    ASSERT_EQ(hpeMemcpy(&word, reinterpret_cast<void*>(array_), sizeof word), HPE_SUCCESS);
    ASSERT_EQ(word, 0U);
  }
  void TearDown() override {
    stand_in::pause(false);
    for (const CUdeviceptr each : {array_, pointer_}) (void)cuMemFree(each);  // a test may have freed the array
    EXPECT_EQ(cuModuleUnload(module_), CUDA_SUCCESS);
  }

  // Queues launches of `raises`.
  void raise(int launches, CUstream stream = nullptr, unsigned by = 1) {
    void* parameters[] = {&array_, &by};
    for (int n = 0; n < launches; ++n)
      ASSERT_EQ(cuLaunchKernel(raises_, 2, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr), CUDA_SUCCESS);
    expected_ += 2 * by * static_cast<unsigned>(launches);
  }
  void chase(int launches) {
    unsigned by = 1;
    void* parameters[] = {&pointer_, &by};
    for (int n = 0; n < launches; ++n)
      ASSERT_EQ(cuLaunchKernel(chases_, 2, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr), CUDA_SUCCESS);
    expected_ += 2 * static_cast<unsigned>(launches);
  }
  void expect_sum() const {
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    unsigned sum = 0;
    ASSERT_EQ(cuMemcpyDtoH(&sum, array_, sizeof sum), CUDA_SUCCESS);
    EXPECT_EQ(sum, expected_);
  }
  static unsigned calls_for_order() {
    unsigned sum = 0;
    for (const char* const entry : {"cuEventRecord", "cuEventQuery", "cuEventCreate", "cuStreamWaitEvent",
                                    "cuStreamIsCapturing", "cuCtxPushCurrent_v2"})
      sum += stand_in::calls(entry);
    return sum;
  }
  // Expects that act() returns only when the paused work of the stand-in goes on.
  static void expect_wait(const std::function<void()>& act) {
    std::future<void> done = std::async(std::launch::async, [&] {
      stand_in::enter_device_0();
      act();
    });
    EXPECT_EQ(done.wait_for(100ms), std::future_status::timeout);
    stand_in::pause(false);
    done.get();
  }

  CUmodule module_ = nullptr;
  CUfunction raises_ = nullptr, chases_ = nullptr;
  CUdeviceptr array_ = 0, pointer_ = 0;
  CUstream stream_ = nullptr;
  unsigned expected_ = 0;
};

// The launches allocate no memory, record no event, and ask the driver nothing.
TEST_F(SpreadKnown, LaunchesNeedOnlyOneCallOfTheDriver) {
  for (const CUstream stream : {CUstream{}, stream_}) {
    ASSERT_NO_FATAL_FAILURE(raise(3, stream));
    const unsigned before = calls_for_order(), launches = stand_in::calls("launches on 0");
    failing_memory::arm(1);
    ASSERT_NO_FATAL_FAILURE(raise(100, stream));
    EXPECT_FALSE(failing_memory::disarm());
    EXPECT_EQ(calls_for_order(), before);
    EXPECT_EQ(stand_in::calls("launches on 0"), launches + 100);
    ASSERT_NO_FATAL_FAILURE(expect_sum());
  }
  ASSERT_NO_FATAL_FAILURE(chase(3));
  const unsigned before = calls_for_order();
  ASSERT_NO_FATAL_FAILURE(chase(100));
  EXPECT_EQ(calls_for_order(), before);
  ASSERT_NO_FATAL_FAILURE(expect_sum());
}

TEST_F(SpreadKnown, NoLaunchJoinsEarlierWorkThatTheProgramCanWaitForAlone) {
  CUevent event = nullptr;
  ASSERT_EQ(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  ASSERT_EQ(cuEventRecord(event, nullptr), CUDA_SUCCESS);
  const std::vector<std::function<CUresult()>> dividing{
      [&] { return cuEventRecord(event, nullptr); },
      [] { return cuStreamSynchronize(nullptr); },
      [] { return cuCtxSynchronize(); },
      [&] { return cuStreamWaitEvent(nullptr, event, 0); },
      [] {
        return cuLaunchHostFunc(
            nullptr, [](void*) {}, nullptr);
      },
  };
  for (std::size_t n = 0; n < dividing.size(); ++n) {
    SCOPED_TRACE(n);
    ASSERT_NO_FATAL_FAILURE(raise(3));
    ASSERT_EQ(dividing[n](), CUDA_SUCCESS);
    const unsigned before = calls_for_order();
    ASSERT_NO_FATAL_FAILURE(raise(1));
    EXPECT_GT(calls_for_order(), before);
  }
  ASSERT_NO_FATAL_FAILURE(expect_sum());
  EXPECT_EQ(cuEventDestroy(event), CUDA_SUCCESS);
}

// After the program has waited for the stream, hpe knows that the launches have ended.
TEST_F(SpreadKnown, LaunchesBeforeAWaitNeedNoEvent) {
  ASSERT_NO_FATAL_FAILURE(raise(3));
  ASSERT_EQ(cuStreamSynchronize(nullptr), CUDA_SUCCESS);
  const auto calls = [] { return stand_in::calls("cuEventRecord") + stand_in::calls("cuEventQuery"); };
  const unsigned before = calls();
  for (int n = 0; n < 10; ++n) {
    ASSERT_NO_FATAL_FAILURE(raise(2));
    ASSERT_EQ(n % 2 == 0 ? cuStreamSynchronize(nullptr) : cuCtxSynchronize(), CUDA_SUCCESS);
  }
  EXPECT_EQ(calls(), before);
  stand_in::pause(true);
  ASSERT_NO_FATAL_FAILURE(raise(1));
  ASSERT_EQ(cuStreamQuery(nullptr), CUDA_ERROR_NOT_READY);
  expect_wait([&] { EXPECT_EQ(cuMemFree(array_), CUDA_SUCCESS); });
}

// A launch after a wait needs a command of its own, but hpe already knows its memory and its context. After the wait of
// the only thread that uses the stream, hpe need not ask the driver whether the earlier launches have ended.
TEST_F(SpreadKnown, LaunchesAfterWaitsAskTheDriverOnlyForCaptures) {
  const auto questions = [] {
    return stand_in::calls("cuStreamGetCtx") + stand_in::calls("cuStreamQuery") + stand_in::calls("cuEventQuery") +
           stand_in::calls("cuEventRecord");
  };
  for (const CUstream stream : {CUstream{}, stream_}) {
    ASSERT_NO_FATAL_FAILURE(raise(3, stream));
    ASSERT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
    ASSERT_NO_FATAL_FAILURE(raise(1, stream));
    ASSERT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
    const unsigned before = questions();
    for (int n = 0; n < 10; ++n) {
      ASSERT_NO_FATAL_FAILURE(raise(1, stream));
      ASSERT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
    }
    EXPECT_EQ(questions(), before);
    ASSERT_NO_FATAL_FAILURE(expect_sum());
  }
}

// hpe's own uses of the memory wait for the latest of these launches.
TEST_F(SpreadKnown, UsesOfTheMemoryWaitForALaunchAfterAWait) {
  for (int n = 0; n < 4; ++n) {
    ASSERT_NO_FATAL_FAILURE(raise(1));
    ASSERT_EQ(cuStreamSynchronize(nullptr), CUDA_SUCCESS);
  }
  stand_in::pause(true);
  ASSERT_NO_FATAL_FAILURE(raise(1));
  unsigned sum = 0;
  expect_wait([&] { EXPECT_EQ(hpeMemcpy(&sum, reinterpret_cast<void*>(array_), sizeof sum), HPE_SUCCESS); });
  EXPECT_EQ(sum, expected_);
}

// The other thread may have queued its launch while the program waited.
TEST_F(SpreadKnown, AfterAWaitOfOneThreadTheLaunchesOfAnotherMayRun) {
  ASSERT_NO_FATAL_FAILURE(raise(3));
  std::async(std::launch::async, [&] {
    stand_in::enter_device_0();
    ASSERT_NO_FATAL_FAILURE(raise(3));
    ASSERT_EQ(cuStreamSynchronize(nullptr), CUDA_SUCCESS);
    ASSERT_NO_FATAL_FAILURE(raise(1));
  }).get();
  ASSERT_NO_FATAL_FAILURE(raise(1));
  const unsigned before = stand_in::calls("cuStreamQuery");
  ASSERT_EQ(cuStreamSynchronize(nullptr), CUDA_SUCCESS);
  EXPECT_GT(stand_in::calls("cuStreamQuery"), before);
  ASSERT_NO_FATAL_FAILURE(expect_sum());
}

// A captured launch runs when the program launches the graph.
TEST_F(SpreadKnown, LaunchesAfterAWaitCanBeCaptured) {
  ASSERT_NO_FATAL_FAILURE(raise(3, stream_));
  ASSERT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  ASSERT_NO_FATAL_FAILURE(raise(1, stream_));
  CUgraph graph = nullptr;
  ASSERT_EQ(cuStreamEndCapture(stream_, &graph), CUDA_SUCCESS);
  EXPECT_EQ(stand_in::calls("cuEventRecord in a capture"), 0U);  // such a record would be a node of the graph
  expected_ -= 2;                                                // the captured launch has not run
  ASSERT_NO_FATAL_FAILURE(expect_sum());
  EXPECT_EQ(cuGraphDestroy(graph), CUDA_SUCCESS);
}

// A thread that waits for a launch that may use any memory also waits for all later launches of this kind. So these
// launches share one command across waits of the program. A launch whose memory hpe knows gets a command of its own.
TEST_F(SpreadKnown, LaunchesThatMayUseAnyMemoryJoinAlsoAfterWaits) {
  ASSERT_NO_FATAL_FAILURE(chase(3));
  const unsigned before = calls_for_order();
  for (int n = 0; n < 10; ++n) {
    ASSERT_NO_FATAL_FAILURE(chase(1));
    ASSERT_EQ(cuStreamSynchronize(nullptr), CUDA_SUCCESS);
    ASSERT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  }
  EXPECT_EQ(calls_for_order(), before);
  stand_in::pause(true);
  ASSERT_NO_FATAL_FAILURE(chase(1));
  EXPECT_EQ(calls_for_order(), before);
  unsigned sum = 0;
  expect_wait([&] { EXPECT_EQ(hpeMemcpy(&sum, reinterpret_cast<void*>(array_), sizeof sum), HPE_SUCCESS); });
  EXPECT_EQ(sum, expected_);

  ASSERT_NO_FATAL_FAILURE(chase(3));
  ASSERT_NO_FATAL_FAILURE(raise(3));
  ASSERT_EQ(cuStreamSynchronize(nullptr), CUDA_SUCCESS);
  const unsigned divided = calls_for_order();
  ASSERT_NO_FATAL_FAILURE(chase(1));
  EXPECT_GT(calls_for_order(), divided);
  ASSERT_NO_FATAL_FAILURE(expect_sum());
}

// After a wait, the program may queue work that ends only when CPU code acts. If this work were in the command of the
// earlier launches, CPU code that waits for these launches would wait forever.
TEST_F(SpreadKnown, WorkOnKnownMemoryJoinsNoLaunchesFromBeforeAWait) {
  ASSERT_NO_FATAL_FAILURE(chase(3));
  ASSERT_EQ(cuStreamSynchronize(nullptr), CUDA_SUCCESS);
  stand_in::pause(true);
  ASSERT_EQ(cuMemsetD32Async(pointer_ + 64, 1, 16, nullptr),
            CUDA_SUCCESS);  // does not end while the stand-in is paused
  auto done = std::async(std::launch::async, [&] {
    stand_in::enter_device_0();
    return cuMemFree(array_);
  });
  EXPECT_EQ(done.wait_for(10s), std::future_status::ready) << "the call waits for work on another array";
  stand_in::pause(false);
  EXPECT_EQ(done.get(), CUDA_SUCCESS);
}

// The function ends only when CPU code acts, which may first wait for the launches. The legacy stream and blocking
// streams wait for each other.
TEST_F(SpreadKnown, WaitsForLaunchesDoNotIncludeALaterFunctionOfTheProgram) {
  CUstream blocking = nullptr;
  ASSERT_EQ(cuStreamCreate(&blocking, CU_STREAM_DEFAULT), CUDA_SUCCESS);
  const struct {
    bool knows_memory;
    CUstream launches, function;
  } cases[] = {
      {false, nullptr, nullptr}, {true, nullptr, nullptr}, {true, nullptr, blocking}, {true, blocking, nullptr}};
  for (const auto& each : cases) {
    SCOPED_TRACE(&each - cases);
    ASSERT_NO_FATAL_FAILURE(each.knows_memory ? raise(3, each.launches) : chase(3));
    std::atomic<bool> goes_on{false};
    const auto function = [](void* flag) {
      while (!static_cast<std::atomic<bool>*>(flag)->load()) std::this_thread::sleep_for(1ms);
    };
    ASSERT_EQ(cuLaunchHostFunc(each.function, function, &goes_on), CUDA_SUCCESS);
    unsigned sum = 0;
    auto read = std::async(std::launch::async, [&] {
      stand_in::enter_device_0();
      return hpeMemcpy(&sum, reinterpret_cast<void*>(array_), sizeof sum);
    });
    EXPECT_EQ(read.wait_for(10s), std::future_status::ready) << "the call waits for the function";
    goes_on = true;
    EXPECT_EQ(read.get(), HPE_SUCCESS);
    EXPECT_EQ(sum, expected_);
    ASSERT_NO_FATAL_FAILURE(expect_sum());  // also waits for the function
  }
  EXPECT_EQ(cuStreamDestroy(blocking), CUDA_SUCCESS);
}

// A new kernel may have the handle of a kernel whose context has ended.
TEST_F(SpreadKnown, KernelsAreForgottenWhenAContextEnds) {
  ASSERT_NO_FATAL_FAILURE(raise(3));
  CUcontext other = nullptr;
  ASSERT_EQ(cuCtxCreate(&other, nullptr, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxDestroy(other), CUDA_SUCCESS);
  ASSERT_NO_FATAL_FAILURE(stand_in::enter_device_0());
  const unsigned before = calls_for_order();
  ASSERT_NO_FATAL_FAILURE(raise(1));
  EXPECT_GT(calls_for_order(), before);
  ASSERT_NO_FATAL_FAILURE(expect_sum());
}

// If a command stayed open, its event would be recorded during the capture.
TEST_F(SpreadKnown, CapturesGoOnAfterAPoolHasEnded) {
  ASSERT_NO_FATAL_FAILURE(raise(3));
  ASSERT_EQ(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  EXPECT_EQ(cuMemPoolDestroy(nullptr), CUDA_SUCCESS);
  const unsigned before = stand_in::calls("cuEventRecord");
  ASSERT_NO_FATAL_FAILURE(raise(10));
  EXPECT_GE(stand_in::calls("cuEventRecord") - before, 10U) << "a command stays open";
  CUgraph graph = nullptr;
  EXPECT_EQ(cuStreamEndCapture(stream_, &graph), CUDA_SUCCESS);
  ASSERT_NO_FATAL_FAILURE(expect_sum());
}

// If a command stayed open, its event would be recorded on the captured stream, and become a part of the program's
// graph.
TEST_F(SpreadKnown, CapturesAreNoticedAlsoAfterAContextHasEnded) {
  ASSERT_NO_FATAL_FAILURE(raise(3, stream_));
  ASSERT_EQ(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  CUcontext other = nullptr;
  ASSERT_EQ(cuCtxCreate(&other, nullptr, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxDestroy(other), CUDA_SUCCESS);
  ASSERT_NO_FATAL_FAILURE(stand_in::enter_device_0());
  const unsigned before = stand_in::calls("cuEventRecord"), expected = expected_;
  ASSERT_NO_FATAL_FAILURE(raise(130, stream_));
  EXPECT_EQ(stand_in::calls("cuEventRecord") - before, 130U) << "a command stays open";
  expected_ = expected;
  CUgraph graph = nullptr;
  EXPECT_EQ(cuStreamEndCapture(stream_, &graph), CUDA_SUCCESS);
  ASSERT_NO_FATAL_FAILURE(expect_sum());
}

// While the driver's queue is full, its functions block, also in other threads. So a program that queues many launches
// waits in hpe instead, before the queue is full.
TEST_F(SpreadKnown, LaunchesThatJoinOpenCommandsDoNotFillTheDriversQueue) {
  for (const bool knows_memory : {true, false}) {
    SCOPED_TRACE(knows_memory);
    stand_in::pause(true);
    const unsigned before = stand_in::calls("cuLaunchKernel");
    std::thread program([&] {
      stand_in::enter_device_0();
      constexpr int many = 3000;
      knows_memory ? raise(many) : chase(many);
    });
    unsigned queued = 0;
    for (int unchanged = 0; unchanged < 10; std::this_thread::sleep_for(100ms)) {
      const unsigned last = std::exchange(queued, stand_in::calls("cuLaunchKernel") - before);
      unchanged = queued == 0 || last != queued ? 0 : unchanged + 1;
    }
    EXPECT_GE(queued, 500U);
    EXPECT_LE(queued, 1024U);
    stand_in::pause(false);
    program.join();
    ASSERT_NO_FATAL_FAILURE(expect_sum());
  }
}

// The third launch differs from the earlier launches in a parameter that does not decide about accesses, and the fourth
// in the stream.
TEST_F(SpreadKnown, LaunchesWithOtherNumbersAreKnown) {
  ASSERT_NO_FATAL_FAILURE(raise(3));
  const unsigned before = calls_for_order();
  ASSERT_NO_FATAL_FAILURE(raise(1, nullptr, 5));
  EXPECT_EQ(calls_for_order(), before);
  ASSERT_EQ(cuStreamSynchronize(nullptr), CUDA_SUCCESS);
  ASSERT_NO_FATAL_FAILURE(raise(1, stream_));
  EXPECT_GT(calls_for_order(), before);
  ASSERT_NO_FATAL_FAILURE(expect_sum());
}

TEST_F(SpreadKnown, OtherWorkOfTheStreamRecordsNoEvent) {
  ASSERT_NO_FATAL_FAILURE(raise(2));
  ASSERT_EQ(cuMemsetD32Async(pointer_ + 64, 1, 16, nullptr), CUDA_SUCCESS);
  const unsigned before = stand_in::calls("cuEventRecord");
  std::array<unsigned, 16> copied{};
  for (int n = 0; n < 4; ++n) {
    ASSERT_NO_FATAL_FAILURE(raise(1));
    ASSERT_EQ(cuMemsetD32Async(pointer_ + 64, 2, 16, nullptr), CUDA_SUCCESS);
    ASSERT_EQ(cuMemcpyDtoH(copied.data(), pointer_ + 64, sizeof copied), CUDA_SUCCESS);
    EXPECT_EQ(copied.back(), 2U);
  }
  EXPECT_EQ(stand_in::calls("cuEventRecord"), before);
  ASSERT_NO_FATAL_FAILURE(expect_sum());
}

TEST_F(SpreadKnown, MovesOfArraysWait) {
  for (const bool knows_memory : {true, false}) {
    const auto launch = [&](int launches) { knows_memory ? raise(launches) : chase(launches); };
    ASSERT_NO_FATAL_FAILURE(launch(3));
    for (const int device : {1, 0}) {
      stand_in::pause(true);
      ASSERT_NO_FATAL_FAILURE(launch(20));
      expect_wait([&] { EXPECT_EQ(hpeMigrate(reinterpret_cast<void*>(array_), device), HPE_SUCCESS); });
      ASSERT_NO_FATAL_FAILURE(launch(3));
      ASSERT_NO_FATAL_FAILURE(expect_sum());
    }
  }
}

TEST_F(SpreadKnown, CopiesByHpeWait) {
  ASSERT_NO_FATAL_FAILURE(raise(3));
  stand_in::pause(true);
  ASSERT_NO_FATAL_FAILURE(raise(20));
  unsigned sum = 0;
  expect_wait([&] { EXPECT_EQ(hpeMemcpy(&sum, reinterpret_cast<void*>(array_), sizeof sum), HPE_SUCCESS); });
  EXPECT_EQ(sum, expected_);
}

TEST_F(SpreadKnown, CopiesBetweenArraysWait) {
  auto* const copied = reinterpret_cast<std::byte*>(pointer_ + 4096);
  ASSERT_NO_FATAL_FAILURE(raise(3));
  stand_in::pause(true);
  ASSERT_NO_FATAL_FAILURE(raise(20));
  std::future<hpeStatus> copy = std::async(
      std::launch::async, [&] { return hpeMemcpy(copied, reinterpret_cast<void*>(array_), sizeof(unsigned)); });
  std::this_thread::sleep_for(20ms);
  stand_in::pause(false);
  EXPECT_EQ(copy.get(), HPE_SUCCESS) << hpeGetLastErrorMessage();
  const unsigned expected = expected_;
  ASSERT_NO_FATAL_FAILURE(raise(20));
  unsigned sum = 0;
  EXPECT_EQ(hpeMemcpy(&sum, copied, sizeof sum), HPE_SUCCESS);
  EXPECT_EQ(sum, expected);
  ASSERT_NO_FATAL_FAILURE(expect_sum());
}

TEST_F(SpreadKnown, CpuCodeSeesTheResultsAndChangesTheArray) {
  auto* const seen = reinterpret_cast<volatile unsigned*>(array_);
  for (int round = 0; round < 3; ++round) {
    ASSERT_NO_FATAL_FAILURE(raise(20));
    EXPECT_EQ(*seen, expected_);
    ASSERT_NO_FATAL_FAILURE(raise(20));
    *seen = expected_ += 7;
    ASSERT_EQ(*seen, expected_);
  }
  ASSERT_NO_FATAL_FAILURE(raise(3));
  ASSERT_NO_FATAL_FAILURE(expect_sum());
}

TEST_F(SpreadKnown, TheEndOfAnAllocationWaits) {
  ASSERT_NO_FATAL_FAILURE(raise(3));
  stand_in::pause(true);
  ASSERT_NO_FATAL_FAILURE(raise(20));
  expect_wait([&] { EXPECT_EQ(cuMemFree(array_), CUDA_SUCCESS); });
}

TEST_F(SpreadKnown, TheEndOfAnAllocationWaitsAlsoIfTheStreamHasEnded) {
  ASSERT_NO_FATAL_FAILURE(raise(3, stream_));
  stand_in::pause(true);
  ASSERT_NO_FATAL_FAILURE(raise(20, stream_));
  ASSERT_EQ(cuStreamDestroy(stream_), CUDA_SUCCESS);
  expect_wait([&] { EXPECT_EQ(cuMemFree(array_), CUDA_SUCCESS); });
}

TEST_F(SpreadKnown, TheEndOfAnAllocationWaitsAlsoIfTheStreamIsCaptured) {
  ASSERT_NO_FATAL_FAILURE(raise(3, stream_));
  stand_in::pause(true);
  ASSERT_NO_FATAL_FAILURE(raise(20, stream_));
  ASSERT_EQ(cuStreamBeginCapture(stream_, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  expect_wait([&] { EXPECT_EQ(cuMemFree(array_), CUDA_SUCCESS); });
  CUgraph graph = nullptr;
  EXPECT_EQ(cuStreamEndCapture(stream_, &graph), CUDA_SUCCESS);
}

// During captures, hpe records an event after each launch, because it could not do so later.
TEST_F(SpreadKnown, LaunchesDuringACaptureAreSubmitted) {
  CUstream captured = nullptr;
  CUgraph graph = nullptr;
  ASSERT_EQ(cuStreamCreate(&captured, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ASSERT_NO_FATAL_FAILURE(raise(3, stream_));
  ASSERT_EQ(cuStreamBeginCapture(captured, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  const auto events_of_ten = [&] {
    const unsigned before = stand_in::calls("cuEventRecord");
    raise(10, stream_);
    return stand_in::calls("cuEventRecord") - before;
  };
  EXPECT_EQ(events_of_ten(), 10U);
  ASSERT_EQ(cuStreamEndCapture(captured, &graph), CUDA_SUCCESS);
  ASSERT_NO_FATAL_FAILURE(raise(1, stream_));
  EXPECT_EQ(events_of_ten(), 0U);
  ASSERT_NO_FATAL_FAILURE(expect_sum());
}

// If the driver refuses the event, hpe waits for the work.
TEST_F(SpreadKnown, MovesWaitAlsoIfTheDriverRefusesAnEvent) {
  ASSERT_NO_FATAL_FAILURE(raise(3));
  stand_in::pause(true);
  ASSERT_NO_FATAL_FAILURE(raise(20));
  stand_in::fail("cuEventRecord", CUDA_ERROR_OUT_OF_MEMORY);
  expect_wait([&] { EXPECT_EQ(hpeMigrate(reinterpret_cast<void*>(array_), 1), HPE_SUCCESS); });
  ASSERT_NO_FATAL_FAILURE(expect_sum());
}

// A kernel of new code may have the handle of an old kernel, and other parameters. hpe does not know which handles end
// with a module.
TEST_F(SpreadKnown, NoLaunchIsKnownAfterCodeHasEnded) {
  CUmodule other = nullptr;
  ASSERT_EQ(cuModuleLoadData(&other, code), CUDA_SUCCESS);
  ASSERT_NO_FATAL_FAILURE(raise(3));
  ASSERT_EQ(cuModuleUnload(other), CUDA_SUCCESS);
  const unsigned before = calls_for_order();
  ASSERT_NO_FATAL_FAILURE(raise(1));
  EXPECT_GT(calls_for_order(), before);
  ASSERT_NO_FATAL_FAILURE(raise(3));
  ASSERT_NO_FATAL_FAILURE(expect_sum());
}

// A launch whose memory hpe does not know may use memory that is newer than the last equal launch, and that CPU code
// has written.
TEST_F(SpreadKnown, LaunchesUseNewMemory) {
  ASSERT_NO_FATAL_FAILURE(chase(3));
  const unsigned before = expected_;
  CUdeviceptr made = 0;
  ASSERT_EQ(cuMemAlloc(&made, bytes), CUDA_SUCCESS);
  *reinterpret_cast<volatile unsigned*>(made) = 7;
  const std::byte* const target = stand_in::memory(made);
  ASSERT_EQ(cuMemcpyHtoD(pointer_, &target, sizeof target), CUDA_SUCCESS);
  ASSERT_NO_FATAL_FAILURE(chase(1));
  unsigned sum = 0;
  ASSERT_EQ(cuMemcpyDtoH(&sum, made, sizeof sum), CUDA_SUCCESS);
  EXPECT_EQ(sum, 9U);
  expected_ = before;
  ASSERT_NO_FATAL_FAILURE(expect_sum());
}

// While an array is on several devices, each launch that stays on one is reported to the planner. Each submission makes
// a context current.
using SpreadReported = stand_in::Spread;
TEST_F(SpreadReported, LaunchesAreNotSubmittedAgain) {
  CUdeviceptr own = 0;
  ASSERT_EQ(cuMemAlloc(&own, stand_in::bytes), CUDA_SUCCESS);
  ASSERT_EQ(cuMemsetD32(own, 0, stand_in::words), CUDA_SUCCESS);
  unsigned count = stand_in::words;
  void* parameters[] = {&own, &count};
  const auto launches = [&](int number) {
    for (int n = 0; n < number; ++n)
      ASSERT_EQ(cuLaunchKernel(stays_, 2, 1, 1, 64, 1, 1, 0, nullptr, parameters, nullptr), CUDA_SUCCESS);
  };
  ASSERT_NO_FATAL_FAILURE(launches(2));
  const unsigned before = stand_in::calls("cuCtxPushCurrent_v2");
  ASSERT_NO_FATAL_FAILURE(launches(10));
  EXPECT_EQ(stand_in::calls("cuCtxPushCurrent_v2"), before);
  ASSERT_EQ(device_of(array_ + stand_in::bytes - 4), 1) << "the test needs arrays in parts";
  unsigned sum = 0;
  ASSERT_EQ(cuMemcpyDtoH(&sum, own, sizeof sum), CUDA_SUCCESS);
  EXPECT_EQ(sum, 12U);
  EXPECT_EQ(cuMemFree(own), CUDA_SUCCESS);
}

TEST_F(SpreadKnown, AnArrayMovesWhileThreadsLaunch) {
  std::atomic<bool> ends{false};
  std::thread moves([&] {
    stand_in::enter_device_0();
    for (int n = 1; !ends; ++n)
      EXPECT_EQ(hpeMigrate(reinterpret_cast<void*>(array_), n % 2), HPE_SUCCESS) << hpeGetLastErrorMessage();
  });
  CUdeviceptr other = 0;
  for (int n = 0; n < 100; ++n) {
    raise(10, stream_);
    EXPECT_EQ(cuMemAlloc(&other, bytes), CUDA_SUCCESS);
    EXPECT_EQ(cuMemFree(other), CUDA_SUCCESS);
  }
  ends = true;
  moves.join();
  ASSERT_NO_FATAL_FAILURE(expect_sum());
}

}  // namespace
