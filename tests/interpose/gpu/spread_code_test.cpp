// Tests how hpe identifies and analyses the kernels of a program that it spreads over devices, if the driver reuses
// handles, if modules are unloaded, and if an analysis fails; and how far the program's launches may run ahead while
// hpe prepares these kernels.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <future>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "interpose/gpu/spread/known_launches.h"
#include "interpose/gpu/spread/launch_pace.h"
#include "interpose/gpu/spread/part_kernels.h"
#include "runtime/os/worker.h"
#include "runtime/ptx/text/parser.h"
#include "tests/interpose/gpu/driver_under_test.h"
#include "tests/interpose/gpu/failing_memory.h"

namespace {

using hpe::cuda_hooks::joined_gpus;
using hpe::cuda_hooks::part_kernel;
using hpe::cuda_hooks::part_kernels;
using hpe::cuda_hooks::program_code;

class SpreadCode : public testing::Test {
 protected:
  static hpe::device::cuda::driver driver_of_device_0() {
    stand_in::enter_device_0();
    return hpe::device::cuda::driver();
  }
  static std::string text_of_kernels() {
    std::ifstream file(HPE_TEST_SPREAD_KERNELS);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  SpreadCode() { gpus_.enter(); }

  const hpe::device::cuda::driver cu_ = driver_of_device_0();
  joined_gpus gpus_{cu_};
  part_kernels kernels{cu_, gpus_};
  program_code& code = program_code::of_process();
  const std::string text = text_of_kernels();
};

TEST_F(SpreadCode, HandlesAreThoseOfTheLastCodeThatHadThem) {
  program_code all;
  const int library = 0, module = 0, kernel = 0, function = 0;  // the addresses of these variables serve as handles
  all.loaded(&library, text.c_str());
  all.is_kernel_of(&kernel, &library, "add");
  all.is_same(&function, &kernel);
  EXPECT_EQ(all.origin_of(&function).name, "add");
  all.unloaded(&library);
  EXPECT_EQ(all.origin_of(&function).name, "");
  all.loaded(&library, text.c_str());
  all.is_kernel_of(&kernel, &library, "mark");
  EXPECT_EQ(all.origin_of(&function).name, "");
  all.loaded(&module, text.c_str());
  all.is_same(&function, &kernel);
  all.is_kernel_of(&function, &module, "count");
  EXPECT_EQ(all.origin_of(&function).name, "count");
  EXPECT_EQ(all.origin_of(&function).from, &module);
}

class LaunchPace : public testing::Test {
 protected:
  void SetUp() override {
    stand_in::enter_device_0();
    ASSERT_EQ(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamCreate(&other_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  }
  void TearDown() override {
    stand_in::pause(false);
    for (CUstream each : {stream_, other_}) EXPECT_EQ(cuStreamDestroy(each), CUDA_SUCCESS);
  }
  // Queues early launches until the GPU is four launches behind. The stand-in runs no work while it is paused.
  void queue_four() {
    stand_in::pause(true);
    ASSERT_EQ(cuMemAlloc(&memory_, 4), CUDA_SUCCESS);
    queue(4);
  }
  void queue(int launches) {
    for (int n = 0; n < launches; ++n) {
      const unsigned queries = stand_in::calls("cuEventQuery");
      pace_.wait(stream_);
      EXPECT_EQ(stand_in::calls("cuEventQuery"), queries) << "launch " << n << " need not wait";
      ASSERT_EQ(cuMemsetD32Async(memory_, 1, 1, stream_), CUDA_SUCCESS);
      pace_.queued(stream_);
    }
  }

  hpe::device::cuda::driver cu_;
  hpe::cuda_hooks::launch_pace pace_{cu_};
  CUstream stream_ = nullptr, other_ = nullptr;
  CUdeviceptr memory_ = 0;
};

TEST_F(LaunchPace, TheFifthLaunchWaitsForTheFirst) {
  ASSERT_NO_FATAL_FAILURE(queue_four());
  pace_.wait(other_);  // returns at once
  std::atomic<bool> has_waited{false};
  std::thread fifth([&] {
    stand_in::enter_device_0();
    pace_.wait(stream_);
    has_waited = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_FALSE(has_waited);
  stand_in::pause(false);
  fifth.join();
}

// The GPU would be idle if it had to wait for the program after every four short launches, and an event after each
// launch would take as long as a short launch.
TEST_F(LaunchPace, GroupsGrowIfTheGpuFinishesThemSoon) {
  ASSERT_NO_FATAL_FAILURE(queue_four());
  for (const int group : {2, 4}) {
    stand_in::pause(false);
    ASSERT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
    const unsigned queries = stand_in::calls("cuEventQuery"), records = stand_in::calls("cuEventRecord");
    pace_.wait(stream_);  // the first group is finished
    EXPECT_EQ(stand_in::calls("cuEventQuery"), queries + 1);
    stand_in::pause(true);
    ASSERT_NO_FATAL_FAILURE(queue(group));
    EXPECT_EQ(stand_in::calls("cuEventRecord"), records + 1);
  }
}

// If the GPU becomes slow, few launches may be queued before a new plan is ready.
TEST_F(LaunchPace, GroupsHaveOneLaunchAgainIfTheGpuTakesLong) {
  ASSERT_NO_FATAL_FAILURE(queue_four());
  stand_in::pause(false);
  ASSERT_EQ(cuStreamSynchronize(stream_), CUDA_SUCCESS);
  stand_in::pause(true);
  for (const int group : {2, 4, 8, 16}) {
    pace_.wait(stream_);  // one of the first four groups is finished
    ASSERT_NO_FATAL_FAILURE(queue(group));
  }
  std::thread waiting([&] {
    stand_in::enter_device_0();
    pace_.wait(stream_);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  stand_in::pause(false);
  waiting.join();
  const unsigned records = stand_in::calls("cuEventRecord");
  ASSERT_NO_FATAL_FAILURE(queue(1));
  EXPECT_EQ(stand_in::calls("cuEventRecord"), records + 1);
}

TEST_F(LaunchPace, EndsIfAKernelWaitsForTheProgram) {
  ASSERT_NO_FATAL_FAILURE(queue_four());
  pace_.wait(stream_);
  for (int n = 0; n < 4; ++n) pace_.queued(stream_);
  const unsigned queries = stand_in::calls("cuEventQuery");
  pace_.wait(stream_);
  EXPECT_EQ(stand_in::calls("cuEventQuery"), queries);
}

TEST_F(SpreadCode, EndsWithItsModule) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  ASSERT_EQ(cuModuleLoadData(&module, text.c_str()), CUDA_SUCCESS);
  ASSERT_EQ(cuModuleGetFunction(&function, module, "add"), CUDA_SUCCESS);
  code.loaded(module, text.c_str());
  code.is_kernel_of(function, module, "add");
  std::shared_ptr<const part_kernel> add = kernels.of(function);
  ASSERT_EQ(add->obstacle, "");
  ASSERT_EQ(kernels.load(add, function, 0).size(), 2U);
  const hpe::spread::module_model& analysed = *add->analysis->model(*add->image);
  EXPECT_EQ(analysed.kernels().size(), 1U) << "only the kernel that is launched";
  ASSERT_EQ(analysed.patched().texts.size(), 1U);
  EXPECT_LT(2 * add->bytes_of_patched(), text.size());

  // The driver's default limit of dynamic shared memory is lower for kernels with other shared memory.
  const auto requests_for = [&](unsigned shared) {
    const unsigned before = stand_in::calls("cuFuncSetAttribute");
    EXPECT_EQ(kernels.load(add, function, shared).size(), 2U);
    return stand_in::calls("cuFuncSetAttribute") - before;
  };
  EXPECT_EQ(requests_for(0), 0U);
  EXPECT_EQ(requests_for(40 << 10), 2U) << "a request for each GPU";
  EXPECT_EQ(requests_for(30 << 10), 0U);
  EXPECT_EQ(requests_for(60 << 10), 2U);

  std::set<const hpe::spread::kernel_model*> gone;
  const auto note = [&](const hpe::spread::kernel_model& model) { gone.insert(&model); };
  const unsigned unloaded = stand_in::calls("cuModuleUnload");
  kernels.forget_handles(note);  // another module is unloaded
  EXPECT_TRUE(gone.empty());
  EXPECT_EQ(stand_in::calls("cuModuleUnload"), unloaded);
  add.reset();
  code.unloaded(module);
  kernels.forget_handles(note);
  EXPECT_EQ(gone.size(), 1U);
  EXPECT_EQ(stand_in::calls("cuModuleUnload"), unloaded + 2);
  ASSERT_EQ(cuModuleUnload(module), CUDA_SUCCESS);
}

// Each allocation of host memory fails once while hpe looks for a kernel. Then the program unloads the kernel's module.
TEST_F(SpreadCode, EndsWithItsModuleAlsoIfThereWasNoMemoryForIt) {
  const int module = 0, handle = 0;  // the addresses of these variables serve as handles
  auto* const function = reinterpret_cast<CUfunction>(const_cast<int*>(&handle));
  bool fails = true;
  for (unsigned k = 1; fails && k < 40; ++k) {
    code.loaded(&module, text.c_str());
    code.is_kernel_of(function, &module, "add");
    failing_memory::arm(k);
    try {
      (void)kernels.of(function);
    } catch (const std::bad_alloc&) {
    }
    fails = failing_memory::disarm();
    code.unloaded(&module);
    kernels.forget_handles([](const hpe::spread::kernel_model&) {});
  }
  EXPECT_TRUE(fails) << "the test must reach the allocations of the analysis";
}

TEST_F(SpreadCode, IsAnalysedAgainIfTheAnalysisHadNoMemory) {
  const int module = 0, handle = 0;  // the addresses of these variables serve as handles
  auto* const function = reinterpret_cast<CUfunction>(const_cast<int*>(&handle));
  code.loaded(&module, text.c_str());
  code.is_kernel_of(function, &module, "add");

  hpe::os::worker by("analyses");
  // Runs a function in the worker, after the worker's earlier tasks.
  const auto in_worker = [&](const std::function<bool()>& call) {
    std::promise<bool> result;
    EXPECT_TRUE(by.post([&] { result.set_value(call()); }));
    return result.get_future().get();
  };
  ASSERT_TRUE(by.post([] { failing_memory::arm(1); }));
  EXPECT_EQ(kernels.of_if_analysed(function, by)->code, nullptr);
  EXPECT_TRUE(in_worker(failing_memory::disarm)) << "the analysis did not allocate";
  EXPECT_EQ(kernels.of_if_analysed(function, by)->obstacle, "hpe has not analysed it yet");
  EXPECT_TRUE(in_worker([] { return true; }));
  const std::shared_ptr<const part_kernel> add = kernels.of_if_analysed(function, by);
  EXPECT_NE(add->code, nullptr);
  EXPECT_EQ(add->obstacle, "");
  code.unloaded(&module);
}

// The kernel's second parameter decides how often its loop runs; its third parameter decides nothing.
TEST(KnownLaunches, AreEqualIfTheirPointersAndDecisiveNumbersAre) {
  const hpe::spread::kernel_model kernel(
      hpe::ptx::parse(
          {".version 8.0\n.target sm_80\n.address_size 64\n"
           ".visible .entry k(.param .u64 a, .param .u32 n, .param .f32 x) {\n"
           ".reg .pred %p;\n.reg .b32 %i, %n;\n.reg .f32 %f;\n.reg .b64 %a;\n"
           "ld.param.u64 %a, [a];\nld.param.u32 %n, [n];\nld.param.f32 %f, [x];\nmov.u32 %i, 0;\n"
           "L:\nst.global.f32 [%a], %f;\nadd.s32 %i, %i, 1;\nsetp.lt.s32 %p, %i, %n;\n@%p bra L;\nret;\n}\n"}),
      "k");
  std::uint64_t a = 4096;
  std::uint32_t n = 3;
  float x = 1;
  void* values[] = {&a, &n, &x};
  const int handle = 0;  // the address of this variable serves as a handle
  hpe::cuda_hooks::program_launch launch;
  launch.function = reinterpret_cast<CUfunction>(const_cast<int*>(&handle));
  launch.parameters = values;
  launch.grid[0] = 2;
  hpe::cuda_hooks::known_launches known;
  EXPECT_EQ(known.find(launch, 1), nullptr);
  known.add(launch, &kernel, {7, true, false, {}});
  const auto is_known = [&] {
    const auto* const found = known.find(launch, 1);
    return found != nullptr && found->changes == 7;
  };
  EXPECT_TRUE(is_known());
  x = 2;
  EXPECT_TRUE(is_known());
  n = 4;
  EXPECT_FALSE(is_known());
  n = 3;
  a = 8192;
  EXPECT_FALSE(is_known());
  a = 4096;
  launch.grid[0] = 3;
  EXPECT_FALSE(is_known());
  launch.grid[0] = 2;
  launch.stream = CU_STREAM_LEGACY;
  EXPECT_FALSE(is_known());
  launch.stream = nullptr;
  launch.obstacle = "its launch is cooperative";
  EXPECT_FALSE(is_known());
  launch.obstacle = nullptr;
  EXPECT_TRUE(is_known());
  values[1] = nullptr;
  EXPECT_FALSE(is_known()) << "the driver refuses this launch";
  values[1] = &n;
  EXPECT_EQ(known.find(launch, 2), nullptr) << "another kernel may have the handle";
}

}  // namespace
