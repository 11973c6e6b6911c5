// The kernels of a checked program, which several threads launch for the first time. The driver's function that returns
// a kernel's name is a fake, with which the analysis begins.
#include "interpose/gpu/check/analysed_kernels.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/interpose/gpu/driver_under_test.h"

namespace {

using namespace hpe::cuda_hooks;

std::map<CUfunction, std::function<const char*()>> names;  // not changed while threads run

CUresult name_of(const char** name, CUfunction kernel) {
  *name = names.at(kernel)();
  return CUDA_SUCCESS;
}

CUfunction handle(std::uintptr_t number) {
  return reinterpret_cast<CUfunction>(number);  // NOLINT(performance-no-int-to-ptr): never used as an address
}

class AnalysedKernels : public testing::Test {
 protected:
  AnalysedKernels() {
    stand_in::enter_device_0();
    driver_.emplace();
    driver_->cuFuncGetName = name_of;
    driver_->cuFuncGetModule = nullptr;
    kernels_ = std::make_unique<analysed_kernels>(*driver_);
  }
  std::string describe(CUfunction kernel) {
    const auto place = std::make_shared<const hpe::check::call_place>();
    return kernels_->describe({{.function = kernel}}, place).what->what;
  }

  std::optional<hpe::device::cuda::driver> driver_;
  std::unique_ptr<analysed_kernels> kernels_;
};

TEST_F(AnalysedKernels, DoNotWaitForEachOther) {
  std::promise<void> begun, other_is_done;
  std::future<void> is_done = other_is_done.get_future();
  bool waited = false;
  names = {{handle(1),
            [&] {
              begun.set_value();
              waited = is_done.wait_for(std::chrono::seconds(20)) == std::future_status::ready;
              return "slow";
            }},
           {handle(2), [] { return "quick"; }}};
  std::string slow;
  std::thread first([&] { slow = describe(handle(1)); });
  begun.get_future().wait();
  EXPECT_EQ(describe(handle(2)), "kernel quick");
  other_is_done.set_value();
  first.join();
  EXPECT_TRUE(waited) << "the second launch has waited for the analysis of the first one";
  EXPECT_EQ(slow, "kernel slow");
}

TEST_F(AnalysedKernels, AreAnalysedOnceByThreadsThatLaunchThemTogether) {
  constexpr int threads = 4, kernels = 16;
  std::array<std::atomic<int>, kernels> analyses{};
  names.clear();
  for (int n = 0; n < kernels; ++n)
    names[handle(static_cast<std::uintptr_t>(n) + 1)] = [&analyses, n] {
      ++analyses.at(static_cast<std::size_t>(n));
      return "some";
    };
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t)
    all.emplace_back([&] {
      for (const auto& [kernel, name] : names) EXPECT_EQ(describe(kernel), "kernel some");
    });
  for (std::thread& each : all) each.join();
  for (const std::atomic<int>& each : analyses) EXPECT_EQ(each, 1);
}

TEST_F(AnalysedKernels, AreForgottenWhenCodeIsUnloaded) {
  names = {{handle(1), [] { return "old"; }}};
  EXPECT_EQ(describe(handle(1)), "kernel old");
  names = {{handle(1), [] { return "new_one"; }}};
  EXPECT_EQ(describe(handle(1)), "kernel old");
  kernels_->forget();
  EXPECT_EQ(describe(handle(1)), "kernel new_one");
}

}  // namespace
