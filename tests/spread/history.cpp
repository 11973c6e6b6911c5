// Tests decisions that depend on earlier launches. An array moves when launches have lost as much time as the move
// takes, and is then placed for the kernel that gains most.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "tests/spread/fixture.h"

namespace hpe::spread::test {
namespace {

constexpr std::uint32_t devices = 2;

/// columns(a, rows, width): a[k * width + i] += 1 for all k < rows; fastest if each row is divided among the devices.
constexpr const char* other_kernels = R"(
.visible .entry columns(.param .u64 a, .param .u32 rows, .param .u32 width) {
  .reg .pred %p; .reg .b32 %r<8>; .reg .b64 %d<6>;
  ld.param.u64 %d0, [a]; ld.param.u32 %r0, [rows]; ld.param.u32 %r1, [width];
  cvta.to.global.u64 %d4, %d0;
  mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.s32 %r5, %r2, %r3, %r4;
  mul.wide.s32 %d1, %r5, 4; add.s64 %d1, %d4, %d1; mul.wide.s32 %d2, %r1, 4; mov.u32 %r6, 0;
LOOP: ld.global.u32 %r7, [%d1]; add.u32 %r7, %r7, 1; st.global.u32 [%d1], %r7;
  add.s64 %d1, %d1, %d2; add.u32 %r6, %r6, 1; setp.lt.s32 %p, %r6, %r0; @%p bra LOOP;
  ret;
}
.visible .entry pointers(.param .u64 out, .param .u64 plain, .param .u64 stored, .param .u64 compared, .param .u64 watched) {
  .reg .pred %p; .reg .b32 %r<8>; .reg .b64 %d<8>;
  ld.param.u64 %d0, [out]; ld.param.u64 %d1, [plain]; ld.param.u64 %d2, [stored];
  ld.param.u64 %d3, [compared]; ld.param.u64 %d4, [watched];
  mov.u32 %r0, %tid.x; mul.wide.u32 %d5, %r0, 8; add.s64 %d6, %d2, %d5; st.global.u64 [%d0], %d6;
  setp.lt.u64 %p, %d3, %d0; @%p bra END;
  add.s64 %d7, %d1, %d5; ld.global.u32 %r1, [%d7]; add.s64 %d7, %d2, %d5; ld.global.u32 %r2, [%d7];
  add.s64 %d7, %d3, %d5; ld.global.u32 %r3, [%d7]; add.s64 %d7, %d4, %d5; ld.volatile.global.u32 %r4, [%d7];
  add.u32 %r1, %r1, %r2; add.u32 %r3, %r3, %r4; add.u32 %r1, %r1, %r3; st.global.u32 [%d0+8], %r1;
END: ret;
}

.visible .entry table(.param .u64 out, .param .u64 in, .param .u32 n) {
  .reg .pred %p; .reg .b32 %r<8>; .reg .b64 %d<6>;
  ld.param.u64 %d0, [out]; ld.param.u64 %d1, [in]; ld.param.u32 %r0, [n];
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.s32 %r4, %r1, %r2, %r3;
  mul.wide.u32 %d2, %r4, 4; add.s64 %d2, %d0, %d2; mov.u32 %r5, 0;
LOOP: mul.wide.u32 %d3, %r3, 4; add.s64 %d3, %d1, %d3; ld.global.u32 %r6, [%d3]; add.u32 %r5, %r5, %r6;
  add.u32 %r3, %r3, %r2; setp.lt.u32 %p, %r3, %r0; @%p bra LOOP;
  st.global.u32 [%d2], %r5; ret;
}
)";

class History : public testing::Test {
 protected:
  static constexpr std::uint64_t count = gib / 4;
  static constexpr std::uint32_t width = 2 * mib;
  const dimension grid_{static_cast<std::uint32_t>(count / 256), 1, 1}, block_{256, 1, 1};
  std::shared_ptr<const ptx::program> program_ = ptx::parse({std::string(scale_kernel) + other_kernels});
  const kernel_model scale_{program_, "scale"}, columns_{program_, "columns"};
  program_on on_{devices};

  program_on::arguments scaled(const kernel_array& a, float factor = 2) {
    program_on::arguments all(*program_->find_kernel("scale"));
    all << a << count << factor;
    return all;
  }
  program_on::arguments by_column(const kernel_array& a) {
    program_on::arguments all(*program_->find_kernel("columns"));
    all << a << static_cast<int>(count / width) << static_cast<int>(width);
    return all;
  }
  decision launch_scale(const kernel_array& a) {
    decision d = on_.decide(scale_, grid_, block_, scaled(a));
    program_on::move(scale_, scaled(a), d, devices);
    return d;
  }
  decision launch_columns(const kernel_array& a) {
    decision d = on_.decide(columns_, {width / 256, 1, 1}, block_, by_column(a));
    program_on::move(columns_, by_column(a), d, devices);
    return d;
  }
  static bool moves(const decision& d) { return d.arrays.at(0).move_to.how != array_placement::kind::stay; }
};

TEST_F(History, AnEmptyArrayIsPlacedAtOnce) {
  kernel_array& a = on_.allocate(count * 4, true);
  a.is_empty = true;
  const decision d = launch_scale(a);
  EXPECT_TRUE(d.is_spread());
  EXPECT_EQ(d.arrays[0].move_to.how, array_placement::kind::parts);
  EXPECT_EQ(d.arrays[0].move_to.bounds, (std::vector<std::uint64_t>{0, gib / 2, gib}));
  EXPECT_FALSE(moves(launch_scale(a)));
}

TEST_F(History, AFullArrayMovesWhenLaunchesHaveLostAsMuchAsTheMoveTakes) {
  kernel_array& a = on_.allocate(count * 4, true);
  double lost = 0, price = 0;
  int launches = 0;
  for (;; ++launches) {
    ASSERT_LT(launches, 1000);
    const decision d = launch_scale(a);
    if (moves(d)) {
      EXPECT_TRUE(d.is_spread());
      break;
    }
    EXPECT_FALSE(d.is_spread());
    double best = d.seconds;
    for (const alternative& each : d.alternatives) {
      if (each.seconds >= best) continue;
      best = each.seconds;
      price = each.move_seconds;
    }
    lost += d.seconds - best;
  }
  EXPECT_GT(launches, 1);
  EXPECT_LT(lost, price);
  EXPECT_GT(lost * (launches + 1.5) / launches, price);
  EXPECT_TRUE(launch_scale(a).is_spread());
  EXPECT_FALSE(moves(launch_scale(a)));
}

TEST_F(History, AMoveThatDidNotHappenIsNotAskedForAgain) {
  kernel_array& a = on_.allocate(count * 4, true);
  a.is_empty = true;
  EXPECT_TRUE(moves(on_.decide(scale_, grid_, block_, scaled(a))));
  for (int n = 0; n < 100; ++n) {
    const decision& d = on_.decide(scale_, grid_, block_, scaled(a));
    EXPECT_FALSE(moves(d));
    EXPECT_FALSE(d.is_spread());
  }
}

TEST_F(History, KernelsThatDisagreeDoNotMoveAnArrayToAndFro) {
  kernel_array& a = on_.allocate(count * 4);
  int moved = 0;
  for (int n = 0; n < 1000; ++n) moved += (moves(launch_scale(a)) ? 1 : 0) + (moves(launch_columns(a)) ? 1 : 0);
  EXPECT_LE(moved, 1);
}

TEST_F(History, AnArrayLiesForTheKernelThatIsLaunchedMost) {
  kernel_array& a = on_.allocate(count * 4);
  EXPECT_FALSE(moves(launch_scale(a)));
  int moved = 0;
  for (int n = 0; n < 1000; ++n) {
    moved += moves(launch_columns(a)) ? 1 : 0;
    if (n % 10 == 0) moved += moves(launch_scale(a)) ? 1 : 0;
  }
  EXPECT_EQ(moved, 1);
  EXPECT_EQ(a.home_of(0), 0);
  EXPECT_EQ(a.home_of(4 * mib), 1);
  EXPECT_EQ(a.home_of(8 * mib), 0);
}

TEST_F(History, ParametersThatNoAddressDependsOnAreNoOtherLaunch) {
  EXPECT_EQ(scale_.decisive_parameters().size(), 1U);
  EXPECT_EQ(scale_.decisive_parameters()[0].offset, 8U);
  kernel_array& a = on_.allocate(count * 4);
  const decision* const first = &on_.decide(scale_, grid_, block_, scaled(a, 2));
  EXPECT_EQ(&on_.decide(scale_, grid_, block_, scaled(a, 3)), first);
}

TEST_F(History, OnlyPointersThatAreNothingButAddressesMayNameACopy) {
  const kernel_model k(program_, "pointers");
  std::vector<bool> may;
  for (const kernel_model::pointer& p : k.pointers()) may.push_back(p.may_be_copied);
  EXPECT_EQ(may, (std::vector<bool>{false, true, false, false, false}));
}

// A program writes the array between launches. hpe copies the array to the devices again each time, because one launch
// gains more than the copy takes.
TEST_F(History, AReplicaThatIsOutdatedIsMadeAgain) {
  const kernel_model k(program_, "table");
  constexpr std::uint32_t blocks = 4096, n = 1U << 22U;
  kernel_array &out = on_.allocate(4 * mib, true), &in = on_.allocate(4ULL * n, true);
  program_on::arguments a(*program_->find_kernel("table"));
  a << out << in << static_cast<int>(n);
  for (int round = 0; round < 5; ++round) {
    in.is_replicated = false;
    in.version = 1;
    decision d = on_.decide(k, {blocks, 1, 1}, block_, a);
    ASSERT_TRUE(d.is_spread());
    EXPECT_EQ(d.arrays.at(1).move_to.how, array_placement::kind::replicated) << round;
    EXPECT_TRUE(d.arrays.at(1).use_replica);
    EXPECT_NE(d.reason.find("its own copy of parameter 2"), std::string::npos) << d.reason;
    in.is_replicated = true;
    in.version = 2;
    d = on_.decide(k, {blocks, 1, 1}, block_, a);
    EXPECT_EQ(d.arrays.at(1).move_to.how, array_placement::kind::stay);
    EXPECT_TRUE(d.arrays.at(1).use_replica);
  }
  in.may_replicate = false;  // there is not enough memory for replicas
  in.is_replicated = false;
  in.version = 3;
  EXPECT_FALSE(on_.decide(k, {blocks, 1, 1}, block_, a).arrays.at(1).use_replica);
}

// The prediction assumes that the remote reads overlap with the instructions, which take as long. A replica costs
// little time, and its benefit does not depend on this assumption.
TEST_F(History, ACopyTakesThePlaceOfRemoteReadsThatCostNothingByPrediction) {
  const kernel_model k(program_, "table");
  constexpr std::uint32_t blocks = 1U << 16U, n = 1U << 18U;
  kernel_array &out = on_.allocate(64 * mib), &in = on_.allocate(4ULL * n, true);
  in.bytes = 2 * mib;
  program_on::arguments a(*program_->find_kernel("table"));
  a << out << in << static_cast<int>(n);
  machine slow;
  slow.devices = devices;
  slow.instruction_rate = 1e11;
  planner p(slow);
  const kernel_array* const arrays[] = {&out, &in};
  const launch l{{blocks, 1, 1}, block_, a.data(), k.analysis().kernel->formals_size};
  const decision d = p.decide(k, l, arrays);
  EXPECT_TRUE(d.is_spread());
  EXPECT_EQ(d.arrays.at(1).move_to.how, array_placement::kind::replicated) << d.reason;
}

// There are few blocks, and each reads the whole array. So making a replica for one launch takes longer than running
// the launch on one device.
TEST_F(History, ReplicasThatOneLaunchUsesAreNotMadeForever) {
  const kernel_model k(program_, "table");
  constexpr std::uint32_t blocks = 8, n = 1U << 24U;
  kernel_array &out = on_.allocate(4 * mib), &in = on_.allocate(4ULL * n);
  program_on::arguments a(*program_->find_kernel("table"));
  a << out << in << static_cast<int>(n);
  int copies = 0, last = 0;
  for (int round = 0; round < 40; ++round) {
    in.is_replicated = false;  // the program has written the array
    ++in.version;
    const decision d = on_.decide(k, {blocks, 1, 1}, block_, a);
    const bool copied = d.arrays.at(1).move_to.how == array_placement::kind::replicated;
    copies += copied ? 1 : 0;
    if (copied) last = round;
    if (!copied) program_on::move(k, a, d, devices);
  }
  EXPECT_GE(copies, 1);
  EXPECT_LE(copies, 2);
  EXPECT_LT(last, 10);
}

TEST_F(History, AFreedAllocationIsForgotten) {
  kernel_array& a = on_.allocate(count * 4, true);
  for (int n = 0; n < 3; ++n) EXPECT_FALSE(moves(launch_scale(a)));
  on_.planner().forget(a.address);
  a.is_empty = true;
  EXPECT_TRUE(moves(launch_scale(a)));
}

}  // namespace
}  // namespace hpe::spread::test
