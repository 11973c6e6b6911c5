// Launches while host memory is short: each allocation of the calling thread fails once. A launch that hpe has queued
// runs, so its call must not fail; a launch whose call fails must not run.

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <string>

#include "hpe/hpe.hpp"
#include "hpe/ptx.h"
#include "hpe/spread.h"
#include "tests/core/test_kernels.h"
#include "tests/operator_new.h"

namespace {

thread_local unsigned calls_left = 0;  // until a call of operator new of this thread throws; 0: no call throws
thread_local bool has_thrown = false;

void* allocate(std::size_t bytes, std::size_t alignment) {
  if (calls_left != 0 && --calls_left == 0) {
    has_thrown = true;
    throw std::bad_alloc();
  }
  return allocate_by_malloc(bytes, alignment);
}

void release(void* p) noexcept { std::free(p); }

constexpr std::uint32_t count = 1 << 16;
constexpr unsigned blocks = 16;

// Each block adds 1 to the element with its number.
constexpr const char* kernels = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry count_blocks(.param .u64 array)
{
  .reg .b64 %rd<5>;
  .reg .b32 %r<4>;
  ld.param.u64 %rd1, [array];
  cvta.to.global.u64 %rd2, %rd1;
  mov.u32 %r1, %ctaid.x;
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd4, %rd2, %rd3;
  ld.global.u32 %r2, [%rd4];
  add.u32 %r3, %r2, 1;
  st.global.u32 [%rd4], %r3;
  ret;
}
)";

class LaunchesWithoutMemory : public testing::Test {
 protected:
  LaunchesWithoutMemory() : it_(count), other_(count, hpe::on_device(1)) { parameters_ = it_.data(); }

  ~LaunchesWithoutMemory() override { unload(); }

  void load() {
    hpe::check(hpeModuleLoadPtx(&module_, &kernels, 1));
    hpe::check(hpeModuleGetKernel(&counts_, module_, "count_blocks"));
  }
  void unload() {
    if (module_ == nullptr) return;
    EXPECT_EQ(hpeModuleUnload(module_), HPE_SUCCESS);
    module_ = nullptr;
  }

  // launch() adds 1 to the first element. prepare() is called before each launch.
  void expect_that_failed_calls_launch_nothing(
      const std::function<hpeStatus()>& launch, const std::function<void()>& prepare = [] {}) {
    unsigned failed = 0;
    for (unsigned n = 1;; ++n) {
      prepare();
      for (std::uint32_t i = 0; i < blocks; ++i) it_[i] = n;  // the host has the bytes, and all work has finished
      has_thrown = false;
      calls_left = n;
      const hpeStatus status = launch();
      calls_left = 0;
      EXPECT_EQ(hpeSynchronize(), HPE_SUCCESS) << hpeGetLastErrorMessage();
      EXPECT_EQ(it_[0], status == HPE_SUCCESS ? n + 1 : n) << "allocation " << n << ": " << hpeStatusName(status);
      if (!has_thrown) break;
      failed += status == HPE_SUCCESS ? 0 : 1;
    }
    EXPECT_GT(failed, 0U);
  }

  // Loads the module again: hpe then treats the next launch of its kernel as the first one.
  void renew() {
    unload();
    load();
  }

  [[nodiscard]] hpeAccess access() { return {it_.data(), it_.size() * sizeof(std::uint32_t), HPE_INOUT}; }

  hpe::array<std::uint32_t> it_;
  hpe::array<std::uint32_t> other_;
  hpeModule module_ = nullptr;
  hpeKernel counts_ = nullptr;
  const std::uint32_t* parameters_ = nullptr;
  static constexpr hpeGrid shape_{{blocks, 1, 1}, {1, 1, 1}, 0, 0, {}};
};

TEST_F(LaunchesWithoutMemory, OfAModuleThatNameTheirAccesses) {
  hpeModule module = nullptr;
  hpeKernel increment = nullptr;
  hpe::check(hpeModuleLoad(&module, HPE_TEST_KERNELS));
  hpe::check(hpeModuleGetKernel(&increment, module, "increment"));
  const increment_parameters parameters{it_.data(), 1, 1, 0};
  const hpeAccess uses = access();
  const hpeShape tiles{{1, 1, 1}, {1, 1, 1}};
  expect_that_failed_calls_launch_nothing(
      [&] { return hpeLaunch(0, increment, &tiles, &parameters, sizeof parameters, &uses, 1); });
  expect_that_failed_calls_launch_nothing(
      [&] { return hpeLaunch(0, increment, &tiles, &parameters, sizeof parameters, nullptr, HPE_ALL); });
}

TEST_F(LaunchesWithoutMemory, OfPtxThatNameTheirAccesses) {
  const hpeAccess uses = access();
  expect_that_failed_calls_launch_nothing(
      [&] { return hpeLaunchGrid(0, counts_, &shape_, &parameters_, sizeof parameters_, &uses, 1, nullptr); },
      [&] { renew(); });
}

TEST_F(LaunchesWithoutMemory, ThatTheProgramOrders) {
  // The launches follow work on another device, on which no launch that may use any memory has followed yet.
  hpe::check(hpeMemset(other_.data(), 0, count * sizeof(std::uint32_t)));
  expect_that_failed_calls_launch_nothing(
      [&] { return hpeLaunchGridAfter(0, counts_, &shape_, &parameters_, sizeof parameters_, nullptr, 0, nullptr); },
      [&] { renew(); });
}

TEST_F(LaunchesWithoutMemory, OverSeveralDevices) {
  hpeSpread how{};
  load();
  ASSERT_EQ(hpeLaunchOver(nullptr, 0, counts_, &shape_, &parameters_, sizeof parameters_, &how), HPE_SUCCESS);
  expect_that_failed_calls_launch_nothing(
      [&] { return hpeLaunchOver(nullptr, 0, counts_, &shape_, &parameters_, sizeof parameters_, &how); });
  const int one = 0;
  expect_that_failed_calls_launch_nothing(
      [&] { return hpeLaunchOver(&one, 1, counts_, &shape_, &parameters_, sizeof parameters_, &how); });
}

}  // namespace
