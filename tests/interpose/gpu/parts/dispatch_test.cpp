// Tests how hooks offer a call of the program to the registered kinds of memory. The first kind that the call concerns
// handles the call, and exceptions become error codes.
#include <gtest/gtest.h>
#include <pthread.h>

#include <array>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "interpose/gpu/hooks/guarded.h"
#include "interpose/gpu/hooks/memory_kind.h"

namespace {

using namespace hpe::cuda_hooks;

enum class thrown { nothing, bad_alloc, out_of_memory, lost, no_region, other_error, of_library, foreign };

CUresult CUDAAPI hook(thrown what, int returned) {
  switch (what) {
    case thrown::nothing: break;
    case thrown::bad_alloc: throw std::bad_alloc();
    case thrown::out_of_memory: throw hpe::error(HPE_ERROR_OUT_OF_MEMORY, "no room");
    case thrown::lost: throw hpe::error(HPE_ERROR_DEVICE_LOST, "lost");
    case thrown::no_region: throw hpe::error(HPE_ERROR_NOT_A_REGION, "no memory");
    case thrown::other_error: throw hpe::error(HPE_ERROR_NOT_SUPPORTED, "other");
    case thrown::of_library: throw std::out_of_range("no such entry");
    case thrown::foreign: throw 7;
  }
  return static_cast<CUresult>(returned);
}

TEST(Dispatch, NoExceptionLeavesAHook) {
  constexpr auto call = &guarded<&hook>::call;
  EXPECT_EQ(call(thrown::nothing, CUDA_ERROR_NOT_READY), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(call(thrown::bad_alloc, 0), CUDA_ERROR_OUT_OF_MEMORY);
  testing::internal::CaptureStderr();
  EXPECT_EQ(call(thrown::out_of_memory, 0), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(call(thrown::lost, 0), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(call(thrown::no_region, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(call(thrown::other_error, 0), CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(call(thrown::of_library, 0), CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(call(thrown::foreign, 0), CUDA_ERROR_UNKNOWN);
  const std::string told = testing::internal::GetCapturedStderr();
  for (const char* const reason :
       {"no room", "lost", "no memory", "other", "no such entry", "an exception of an unknown type"})
    EXPECT_NE(told.find(std::string("a call of the CUDA driver fails: ") + reason), std::string::npos) << told;
}

CUresult CUDAAPI hook_in_which_the_thread_ends() { ::pthread_exit(nullptr); }

TEST(Dispatch, AThreadMayEndInAHook) {
  bool went_on = false;
  std::thread([&] {
    (void)guarded<&hook_in_which_the_thread_ends>::call();
    went_on = true;
  }).join();
  EXPECT_FALSE(went_on);
}

/// A kind of memory with one address, which records the parts of work that it queues.
class memory_at final : public memory_kind {
 public:
  explicit memory_at(CUdeviceptr base) : base_(base) {}
  std::optional<CUresult> run(const device_call& call, queue_part queue) override {
    if (call.to != base_) return std::nullopt;
    const std::array sides{call.shape.to};
    hpe::box_parts parts(call.shape.extent, sides, 4);
    while (const auto part = parts.next())
      if (const CUresult result = queue(*part); result != CUDA_SUCCESS) return result;
    return CUDA_SUCCESS;
  }
  CUresult failure() override { return failure_; }

  CUresult failure_ = CUDA_SUCCESS;

 private:
  CUdeviceptr base_;
};

TEST(Dispatch, TheFirstKindThatACallConcernsAnswersIt) {
  const auto run_at = [](CUdeviceptr to, std::vector<std::size_t>& parts) {
    return memory_kinds::first([&](memory_kind& kind) {
      return kind.run({.what = device_call::family::fill, .to = to, .shape = {{10}}}, [&](const hpe::box_part& part) {
        parts.push_back(part.x);
        return part.x == 8 ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
      });
    });
  };
  std::vector<std::size_t> parts;
  EXPECT_FALSE(memory_kinds::any());
  EXPECT_FALSE(run_at(1, parts));
  memory_at one(1), two(2), again(2);
  for (memory_kind* const kind : {&one, &two, &again}) memory_kinds::add(*kind);
  EXPECT_TRUE(memory_kinds::any());
  EXPECT_FALSE(run_at(3, parts));
  EXPECT_TRUE(parts.empty());
  EXPECT_EQ(run_at(2, parts), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(parts, (std::vector<std::size_t>{0, 4, 8})) << "each part is queued once, up to the part that failed";
  std::vector<CUresult> failures;
  two.failure_ = CUDA_ERROR_LAUNCH_FAILED;
  memory_kinds::each([&](memory_kind& kind) { failures.push_back(kind.failure()); });
  EXPECT_EQ(failures, (std::vector<CUresult>{CUDA_SUCCESS, CUDA_ERROR_LAUNCH_FAILED, CUDA_SUCCESS}));
}

TEST(Dispatch, TheReasonsToLookAtCallsAreOneWord) {
  EXPECT_FALSE(call_watch::has(call_watch::touched | call_watch::waits | call_watch::recording));
  call_watch::begin(call_watch::touched);
  call_watch::begin(call_watch::waits);
  EXPECT_TRUE(call_watch::any());
  call_watch::end(call_watch::touched);
  EXPECT_FALSE(call_watch::has(call_watch::touched));
  EXPECT_TRUE(call_watch::has(call_watch::touched | call_watch::waits));
  call_watch::end(call_watch::waits);
  EXPECT_FALSE(call_watch::has(call_watch::waits));
}

}  // namespace
