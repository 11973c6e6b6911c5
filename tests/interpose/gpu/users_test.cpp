// Calls of MPI and libc wait for the work that may use their memory: with HPE_SCOPE=args only for the work whose
// parameters name the memory, otherwise for all work. In each test, a kernel runs until the test releases it.
#include <cuda.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <future>
#include <string_view>
#include <thread>

#include "interpose/adopted_pointers.h"
#include "tests/interpose/gpu/driver_under_test.h"

namespace {

using hpe::interpose::adopted_pointers;
using namespace std::chrono_literals;

struct gate {
  std::atomic<bool> open{false};
  std::atomic<bool> passed{false};
};

// A kernel that waits for the gate and then writes a byte. Parameters: address, gate, byte.
const stand_in::kernel held{[](const std::uint64_t* parameters) {
                              auto* const g = reinterpret_cast<gate*>(parameters[1]);
                              while (!g->open) std::this_thread::sleep_for(100us);
                              *stand_in::memory(parameters[0]) = static_cast<std::byte>(parameters[2]);
                              g->passed = true;
                            },
                            3};

const bool by_parameters = [] {
  const char* const scope = std::getenv("HPE_SCOPE");
  return scope != nullptr && std::string_view(scope) == "args";
}();

class Order : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(stand_in::enter_device_0());
    for (CUdeviceptr* m : {&mine, &others, &source}) {
      ASSERT_EQ(cuMemAlloc(m, bytes), CUDA_SUCCESS);
      ASSERT_EQ(cuMemsetD8(*m, 1, bytes), CUDA_SUCCESS);
    }
    for (CUstream& s : streams) ASSERT_EQ(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    pointers = adopted_pointers::instance();
    ASSERT_NE(pointers, nullptr);
  }
  void TearDown() override {
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
    for (const CUstream s : streams)
      if (s != nullptr) {
        EXPECT_EQ(cuStreamDestroy(s), CUDA_SUCCESS);
      }
    for (const CUdeviceptr m : {mine, others, source}) EXPECT_EQ(cuMemFree(m), CUDA_SUCCESS);
  }

  void launch(CUstream stream, CUdeviceptr address, gate& g, std::uint64_t byte = written) {
    gate* at = &g;
    void* parameters[] = {&address, static_cast<void*>(&at), &byte};
    auto* const function = reinterpret_cast<CUfunction>(const_cast<stand_in::kernel*>(&held));
    ASSERT_EQ(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr), CUDA_SUCCESS);
  }

  void share(CUdeviceptr address) const {
    EXPECT_TRUE(pointers->share(address, bytes, adopted_pointers::peer_use::read, pointers->queued_now()));
  }
  void pull(CUdeviceptr to) const {
    const std::uint64_t queued = pointers->queued_now();
    const auto from = pointers->share(source, bytes, adopted_pointers::peer_use::read, 0);
    ASSERT_TRUE(from);
    const auto copy = pointers->pull(reinterpret_cast<void*>(to), *from, hpe::box_copy{{bytes}}, queued);
    ASSERT_TRUE(copy);
    copy->wait();
  }
  // Returns functions that use the memory, one for each way in which calls can use memory.
  [[nodiscard]] std::vector<std::function<void()>> uses_of(CUdeviceptr memory) {
    return {[=, this] { share(memory); }, [=, this] { pull(memory); },
            [=, this] { pointers->read(host.data(), memory, bytes); },
            [=, this] { pointers->write(memory, host.data(), bytes); }};
  }

  // Returns whether the call returns while the gate is closed. Then opens the gate.
  [[nodiscard]] bool returns_before(gate& g, const std::function<void()>& call) {
    auto running = std::async(std::launch::async, [&] {
      stand_in::enter_device_0();
      call();
      return g.passed.load();
    });
    const bool at_once = running.wait_for(200ms) == std::future_status::ready;
    EXPECT_FALSE(g.passed);
    g.open = true;
    EXPECT_EQ(running.get(), !at_once) << "a call that waits returns after the kernel";
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);  // no kernel may use the gate after this
    return at_once;
  }
  // Makes the first call in the process; the first call waits for all work.
  void first_call() const { share(mine); }

  static constexpr std::size_t bytes = 5000;
  static constexpr std::uint64_t written = 77;
  CUdeviceptr mine = 0;
  CUdeviceptr others = 0;
  CUdeviceptr source = 0;
  CUstream streams[2]{};
  std::vector<std::byte> host{bytes};
  adopted_pointers* pointers = nullptr;
};

class WaitsForAll : public Order {};
class WaitsForUsers : public Order {
 protected:
  void SetUp() override {
    if (!by_parameters) GTEST_SKIP() << "needs HPE_SCOPE=args";
    Order::SetUp();
  }
  void TearDown() override {
    if (by_parameters) Order::TearDown();
  }
};

TEST_F(WaitsForAll, AnyKernelHoldsUpACall) {
  for (const auto& use : uses_of(mine)) {
    gate g;
    launch(streams[0], others, g);
    EXPECT_FALSE(returns_before(g, use));
  }
}

TEST_F(WaitsForUsers, TheFirstCallWaitsForAllEarlierWork) {
  static bool is_first = true;
  if (!std::exchange(is_first, false)) GTEST_SKIP() << "another test of this process has made a call";
  gate g;
  launch(streams[0], others, g);
  EXPECT_FALSE(returns_before(g, [this] { share(mine); }));
}

TEST_F(WaitsForUsers, KernelsOfOtherMemoryDoNotHoldUpACall) {
  first_call();
  for (const auto& use : uses_of(mine)) {
    gate g;
    launch(streams[0], others + 3, g);
    EXPECT_TRUE(returns_before(g, use));
  }
}

TEST_F(WaitsForUsers, KernelsOfTheMemoryHoldUpACall) {
  first_call();
  std::uint64_t byte = written;
  for (const auto& use : uses_of(mine)) {
    gate g;
    gate before;
    before.open = true;
    launch(streams[1], mine, before);  // on another stream; finishes first
    launch(streams[0], mine + 3, g, ++byte);
    EXPECT_FALSE(returns_before(g, use));
  }
  // The last call was a write, and it came after the kernel's write.
  EXPECT_EQ(*stand_in::memory(mine + 3), host[3]);
}

TEST_F(WaitsForUsers, MemoryThatNoCallHasUsedBefore) {
  first_call();
  gate g;
  launch(streams[0], others, g);
  EXPECT_FALSE(returns_before(g, [this] { share(others); }));
}

TEST_F(WaitsForUsers, CopiesAndFillsUseTheirBytes) {
  first_call();
  CUdeviceptr third = 0;
  ASSERT_EQ(cuMemAlloc(&third, bytes), CUDA_SUCCESS);
  for (const bool copied : {true, false}) {
    for (const auto& [memory, at_once] :
         {std::pair{others, false}, std::pair{source, !copied}, std::pair{mine, true}}) {
      gate g;
      launch(streams[0], third, g);
      ASSERT_EQ(copied ? cuMemcpyDtoDAsync(others + 1, source + 1, 9, streams[0])
                       : cuMemsetD8Async(others + 1, 7, 9, streams[0]),
                CUDA_SUCCESS);
      EXPECT_EQ(returns_before(g, [this, m = memory] { share(m); }), at_once) << copied;
    }
  }
  EXPECT_EQ(cuMemFree(third), CUDA_SUCCESS);
}

TEST_F(WaitsForUsers, OtherWorkMayUseAnyMemory) {
  first_call();
  gate g;
  launch(streams[0], others, g);
  int graph = 0;  // any address is the handle of an empty graph in the stand-in
  ASSERT_EQ(cuGraphLaunch(reinterpret_cast<CUgraphExec>(&graph), streams[0]), CUDA_SUCCESS);
  EXPECT_FALSE(returns_before(g, [this] { share(mine); }));
}

// The driver does not report the parameters of this kernel.
gate* of_untold = nullptr;
const stand_in::kernel untold{[](const std::uint64_t*) {
                                while (!of_untold->open) std::this_thread::sleep_for(100us);
                                of_untold->passed = true;
                              },
                              0};

TEST_F(WaitsForUsers, KernelsOfUnknownParametersMayUseAnyMemory) {
  first_call();
  gate g;
  of_untold = &g;
  void* parameters[] = {nullptr};
  auto* const function = reinterpret_cast<CUfunction>(const_cast<stand_in::kernel*>(&untold));
  ASSERT_EQ(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, streams[0], parameters, nullptr), CUDA_SUCCESS);
  EXPECT_FALSE(returns_before(g, [this] { share(mine); }));
}

TEST_F(WaitsForUsers, AWaitOfTheProgramIsEnough) {
  first_call();
  for (const bool for_stream : {true, false}) {
    gate done;
    done.open = true;
    launch(streams[0], mine, done);
    ASSERT_EQ(for_stream ? cuStreamSynchronize(streams[0]) : cuCtxSynchronize(), CUDA_SUCCESS);
    gate g;
    launch(streams[1], others, g);
    const auto waits = [] { return stand_in::calls("cuStreamSynchronize") + stand_in::calls("cuCtxSynchronize"); };
    EXPECT_TRUE(returns_before(g, [&] {
      const unsigned before = waits();
      share(mine);
      EXPECT_EQ(waits(), before);
    }));
  }
}

TEST_F(WaitsForUsers, WorkOnAnEndedStreamIsWaitedFor) {
  first_call();
  gate g;
  launch(streams[0], mine, g);
  ASSERT_EQ(cuStreamDestroy(std::exchange(streams[0], nullptr)), CUDA_SUCCESS);
  EXPECT_FALSE(returns_before(g, [this] { share(mine); }));
}

TEST_F(WaitsForUsers, WorkOnAThreadsDefaultStream) {
  first_call();
  gate first;
  launch(CU_STREAM_PER_THREAD, others, first);
  EXPECT_TRUE(returns_before(first, [this] { share(mine); }));
  gate second;
  launch(CU_STREAM_PER_THREAD, mine, second);
  EXPECT_FALSE(returns_before(second, [this] { share(mine); }));
}

TEST_F(WaitsForUsers, ManyDifferentParametersCountAsAnyMemory) {
  first_call();
  gate many;
  launch(streams[0], others, many);
  for (unsigned i = 0; i < 3000; ++i) launch(streams[0], others, many);
  EXPECT_TRUE(returns_before(many, [this] { share(mine); }));
  gate different;
  launch(streams[0], others, different);
  for (unsigned i = 0; i < 3000; ++i) launch(streams[0], others + i, different);
  EXPECT_FALSE(returns_before(different, [this] { share(mine); }));
}

TEST_F(WaitsForUsers, SeveralContextsMeanAWaitForAll) {
  first_call();
  CUcontext second = nullptr;
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&second, 1), CUDA_SUCCESS);
  gate g;
  launch(streams[0], others, g);
  EXPECT_FALSE(returns_before(g, [this] { share(mine); }));
  EXPECT_EQ(cuDevicePrimaryCtxRelease(1), CUDA_SUCCESS);
}

}  // namespace
