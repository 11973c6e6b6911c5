// Replicas of arrays on devices that read the whole array. If links between devices are slow (HPE_SOFT_PEER_LINK),
// launches make replicas; otherwise the tests only check the results.

#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include "hpe/ndarray.hpp"

namespace {

/// sums(out, in, n): each thread adds the elements of `in` whose index, modulo the block size, is the thread's index in
/// its block.
constexpr const char* text = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry sums(.param .u64 out, .param .u64 in, .param .u32 n) {
  .reg .pred %p; .reg .b32 %r<8>; .reg .b64 %d<6>;
  ld.param.u64 %d0, [out]; ld.param.u64 %d1, [in]; ld.param.u32 %r0, [n];
  cvta.to.global.u64 %d0, %d0; cvta.to.global.u64 %d1, %d1;
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.s32 %r4, %r1, %r2, %r3;
  mul.wide.u32 %d2, %r4, 4; add.s64 %d2, %d0, %d2; mov.u32 %r5, 0;
LOOP: mul.wide.u32 %d3, %r3, 4; add.s64 %d3, %d1, %d3;
  ld.global.u32 %r6, [%d3]; add.u32 %r5, %r5, %r6;
  add.u32 %r3, %r3, %r2; setp.lt.u32 %p, %r3, %r0; @%p bra LOOP;
  st.global.u32 [%d2], %r5; ret;
}
.visible .entry add_one(.param .u64 a) {
  .reg .b32 %r<4>; .reg .b64 %d<4>;
  ld.param.u64 %d0, [a]; cvta.to.global.u64 %d0, %d0;
  mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x; mad.lo.s32 %r0, %r0, %r1, %r2;
  mul.wide.u32 %d1, %r0, 4; add.s64 %d1, %d0, %d1;
  ld.global.u32 %r3, [%d1]; add.u32 %r3, %r3, 1; st.global.u32 [%d1], %r3; ret;
}
)";

class Replicas : public ::testing::Test {
 protected:
  static constexpr std::uint32_t n = 1 << 17, blocks = 64, threads = 256;
  static constexpr std::size_t chunk = 2 << 20;

  Replicas() {
    std::iota(input_.begin(), input_.end(), 0x1234567U);
    hpe::copy(in_.data(), input_.data(), n * sizeof(unsigned));
  }

  /// Returns whether the launch used replicas. Always true if the launch need not use replicas.
  static testing::AssertionResult uses_copies(const hpeSpread& how) {
    const bool should = std::getenv("HPE_SOFT_PEER_LINK") != nullptr && hpe::device_count() > 1;
    if (!should || std::string(how.reason).find("its own copy of parameter 2") != std::string::npos)
      return testing::AssertionSuccess();
    return testing::AssertionFailure() << how.reason;
  }

  hpeSpread launch(const std::vector<int>& devices = {}, std::uint32_t skipped = 0) {
    return hpe::launch_over(devices, module_["sums"], {blocks}, {threads}, out_, in_.data() + skipped, n - skipped);
  }
  /// Returns whether each thread has the right sum of the present input.
  testing::AssertionResult is_right(std::uint32_t skipped = 0) {
    std::vector<unsigned> sums(threads);
    for (std::uint32_t i = 0; i < n - skipped; ++i) sums[i % threads] += input_[skipped + i];
    for (std::uint32_t i = 0; i < blocks * threads; ++i)
      if (out_(i) != sums[i % threads]) return testing::AssertionFailure() << "thread " << i << ": " << out_(i);
    return testing::AssertionSuccess();
  }
  /// Returns whether allocations fail if a device has not enough memory.
  static bool is_memory_limited() {
    const char* const oversubscribes = std::getenv("HPE_OVERSUBSCRIBE");
    return oversubscribes != nullptr && std::string(oversubscribes) == "off" &&
           hpe::device_info(0).kind != HPE_DEVICE_CUDA;
  }
  /// Allocates chunks on the last device until an allocation fails, and appends them to `to`. Returns the number of
  /// these chunks.
  static std::size_t room_for(std::vector<void*>& to) {
    void* made = nullptr;
    while (hpeMallocOn(&made, chunk, hpe::device_count() - 1) == HPE_SUCCESS) to.push_back(made);
    return to.size();
  }
  static void release(std::vector<void*>& chunks) {
    for (void* const each : chunks) EXPECT_EQ(hpeFree(each), HPE_SUCCESS);
    chunks.clear();
  }

  const hpe::ptx_module module_{text};
  std::vector<unsigned> input_ = std::vector<unsigned>(n);
  hpe::ndarray<unsigned, 1> in_{{n}}, out_{{std::size_t{blocks} * threads}};
};

TEST_F(Replicas, GiveTheResultsOfOneDevice) {
  launch({0});
  EXPECT_TRUE(is_right());
  for (int round = 0; round < 3; ++round) {
    out_.fill(0);
    const hpeSpread how = launch();
    EXPECT_TRUE(uses_copies(how));
    EXPECT_TRUE(is_right());
  }
  launch({}, 1000);
  EXPECT_TRUE(is_right(1000));
}

TEST_F(Replicas, SeeEachWriteBetweenLaunches) {
  launch();
  EXPECT_TRUE(is_right());
  for (int round = 0; round < 2; ++round) {
    in_(77) = input_[77] = 5000U + static_cast<unsigned>(round);  // CPU code writes
    EXPECT_TRUE(uses_copies(launch()));
    EXPECT_TRUE(is_right());

    hpe::launch_over(module_["add_one"], {n / threads}, {threads}, in_);  // a kernel writes
    for (unsigned& x : input_) ++x;
    launch();
    EXPECT_TRUE(is_right());

    std::fill(input_.begin() + 300, input_.begin() + 40000, 0x05050505U);  // a memset writes
    hpe::fill(in_.data() + 300, 5, 39700 * sizeof(unsigned));
    launch();
    EXPECT_TRUE(is_right());

    std::iota(input_.begin() + n / 2, input_.end(), static_cast<unsigned>(round));  // a copy writes
    hpe::copy(in_.data() + n / 2, input_.data() + n / 2, n / 2 * sizeof(unsigned));
    launch();
    EXPECT_TRUE(is_right());
  }
}

TEST_F(Replicas, OfFreedArraysAreNotUsed) {
  for (unsigned round = 0; round < 4; ++round) {
    in_ = {};
    in_ = hpe::ndarray<unsigned, 1>({n});
    std::fill(input_.begin(), input_.end(), round + 1);
    hpe::copy(in_.data(), input_.data(), n * sizeof(unsigned));
    launch();
    EXPECT_TRUE(is_right());
  }
}

TEST_F(Replicas, GiveWayToAllocations) {
  if (!is_memory_limited()) GTEST_SKIP() << "needs HPE_OVERSUBSCRIBE=off and soft devices";
  std::vector<void*> chunks;
  const std::size_t room = room_for(chunks);
  release(chunks);
  EXPECT_TRUE(uses_copies(launch()));
  EXPECT_EQ(room_for(chunks), room);
  launch();
  EXPECT_TRUE(is_right());
  release(chunks);
}

TEST_F(Replicas, AreLeftOutWhereMemoryIsShort) {
  if (!is_memory_limited()) GTEST_SKIP() << "needs HPE_OVERSUBSCRIBE=off and soft devices";
  std::vector<void*> chunks;
  room_for(chunks);
  for (int round = 0; round < 3; ++round) {
    launch();
    EXPECT_TRUE(is_right());
  }
  release(chunks);
}

}  // namespace
