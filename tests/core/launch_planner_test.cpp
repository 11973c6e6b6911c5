// While the planner of spread launches moves an array, other threads launch kernels over other arrays.

#include "runtime/core/operations/launch_planner.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <future>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "runtime/core/operations/spreader.h"
#include "runtime/core/runtime.h"
#include "runtime/ptx/text/parser.h"
#include "tests/core/test_kernels.h"

namespace hpe::core {
namespace {

/// scale(a, n): a[i] *= 2 for the global index i < n.
constexpr const char* text = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry scale(.param .u64 a, .param .u64 n) {
  .reg .pred %p; .reg .b32 %r<4>; .reg .b64 %d<6>; .reg .f32 %f<3>;
  ld.param.u64 %d0, [a]; ld.param.u64 %d1, [n];
  mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mul.wide.u32 %d2, %r0, %r1;
  mov.u32 %r2, %tid.x; cvt.u64.u32 %d3, %r2; add.s64 %d2, %d2, %d3;
  setp.ge.u64 %p, %d2, %d1; @%p bra END;
  cvta.to.global.u64 %d4, %d0; shl.b64 %d2, %d2, 2; add.s64 %d4, %d4, %d2;
  ld.global.f32 %f1, [%d4]; add.f32 %f1, %f1, %f1; st.global.f32 [%d4], %f1;
END: ret;
}
)";

class launches_of_threads : public testing::Test {
 protected:
  static constexpr std::size_t bytes = std::size_t{64} << 20;

  launches_of_threads() {
    ::setenv("HPE_SOFT_PEER_LINK", "10M:5",
             1);  // so slow that arrays move; soft devices read this variable themselves
    options chosen = options::from_environment();
    chosen.devices = "soft:2";
    runtime_ = std::make_unique<runtime>(chosen);
    planner_ = std::make_unique<launch_planner>(runtime_->devices(), runtime_->memory(),
                                                runtime_->spread().copies_of_arrays(), std::vector<unsigned>{0, 1});
    words_ = reinterpret_cast<std::uint32_t*>(runtime_->memory().allocate_host(bytes, true));
    words_[0] = 0;
  }
  [[nodiscard]] std::byte* allocate() { return runtime_->memory().allocate(bytes, 0); }
  // Plans a launch over an array that has no data yet. Such an array moves at once.
  void plan(std::byte* array) {
    struct {
      std::byte* a;
      std::uint64_t n;
    } const parameters{array, bytes / sizeof(float)};
    static_cast<void>(
        planner_->decide(scale_, {{bytes / sizeof(float) / 256, 1, 1}, {256, 1, 1}, &parameters, sizeof parameters}));
  }
  // Queues a kernel that reads an array and ends after let_go().
  void use(std::byte* array) {
    const hpeKernel meet = runtime_->kernels().find(runtime_->kernels().load(HPE_TEST_KERNELS), "meet");
    const meet_parameters parameters{words_, 2, words_ + 1};
    const hpeAccess access{array, bytes, HPE_IN};
    runtime_->kernels().launch(0, meet, device::shape{1}, std::as_bytes(std::span(&parameters, 1)),
                               {.accesses = std::span(&access, 1)});
  }
  void let_go() { ++std::atomic_ref(words_[0]); }
  [[nodiscard]] bool is_on_both_devices(std::byte* array) {
    const coherence::region& r = *runtime_->memory().find(array).region;
    const lock_guard lock(r.mutex);
    return r.home_set() == 3;
  }

  std::unique_ptr<runtime> runtime_;
  std::unique_ptr<launch_planner> planner_;
  const spread::kernel_model scale_{ptx::parse({text}), "scale"};
  std::uint32_t* words_ = nullptr;
};

// The move waits for the kernel that uses the array.
TEST_F(launches_of_threads, wait_only_for_moves_of_their_own_arrays) {
  std::byte *const used = allocate(), *const other = allocate();
  use(used);
  std::atomic<unsigned> planned{0};
  const auto plan_used = [&] {
    plan(used);
    ++planned;
  };
  std::thread first(plan_used), second(plan_used);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  auto done = std::async(std::launch::async, [&] {
    plan(other);
    planner_->forget(other);
    return planner_->gained().seconds;
  });
  EXPECT_EQ(done.wait_for(std::chrono::seconds(20)), std::future_status::ready)
      << "a move of another array holds it up";
  EXPECT_EQ(planned, 0U) << "the array's move waits for the kernel: ";
  EXPECT_FALSE(is_on_both_devices(used));
  auto forgotten = std::async(std::launch::async, [&] { planner_->forget(used); });
  EXPECT_EQ(forgotten.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout)
      << "forget() waits for the move";
  let_go();
  first.join();
  second.join();
  done.get();
  forgotten.get();
  EXPECT_TRUE(is_on_both_devices(used));
  EXPECT_TRUE(is_on_both_devices(other));
}

// Programs for one GPU, such as those with an allocator of their own, use the first bytes of a large allocation most.
TEST(arrays_larger_than_a_device, begin_on_the_first_device_and_leave_a_part_of_it_free) {
  constexpr std::size_t memory = std::size_t{64} << 20;
  ::setenv("HPE_DEVICE_MEMORY", "64M", 1);  // the devices read this variable themselves
  options chosen = options::from_environment();
  chosen.devices = "soft:2";
  chosen.oversubscribe = oversubscription::off;
  runtime with(chosen);
  launch_planner planner(with.devices(), with.memory(), with.spread().copies_of_arrays(), {0, 1});
  std::byte* const array = planner.allocate(memory / 4 * 5, launch_planner::first_home::one);
  const coherence::region& r = *with.memory().find(array).region;
  {
    const lock_guard lock(r.mutex);
    std::vector<std::uint64_t> ends;
    r.for_each_home(r.whole(), [&](unsigned home, coherence::byte_range part) {
      EXPECT_EQ(home, ends.size());
      ends.push_back(part.end);
    });
    EXPECT_EQ(ends, (std::vector<std::uint64_t>{memory / 16 * 15, memory / 4 * 5}));
  }
  // A small array of the program still fits on the first device.
  std::byte* const small = planner.allocate(memory / 32, launch_planner::first_home::one);
  EXPECT_EQ(with.memory().find(small).region->home_set(), 1U);
  planner.forget(array);
  planner.forget(small);
  ::unsetenv("HPE_DEVICE_MEMORY");
}

}  // namespace
}  // namespace hpe::core
