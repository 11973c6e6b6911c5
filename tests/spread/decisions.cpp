// Tests the planner's decisions for the kernels of tests/ptx/programs/single_gpu.cu, on two devices with the rates of
// H200s.

#include <gtest/gtest.h>

#include "tests/ptx/kernel_runner.h"
#include "tests/spread/fixture.h"

namespace hpe::spread::test {
namespace {

class Decisions : public testing::Test {
 protected:
  std::shared_ptr<const ptx::program> program_ =
      ptx::parse({ptx::test::read_file(std::string(HPE_PTX_PROGRAMS) + "/single_gpu.ptx")});
  program_on on_{2};

  template <class... Arguments>
  decision decide(const std::string& name, const dimension& grid, const dimension& block, const Arguments&... all) {
    const kernel_model model(program_, name);
    program_on::arguments arguments(*program_->find_kernel(name));
    (arguments << ... << all);
    return on_.decide(model, grid, block, arguments);
  }
  kernel_array& empty(std::uint64_t bytes) {
    kernel_array& a = on_.allocate(bytes);
    a.is_empty = true;
    return a;
  }
  static double gain(const decision& d) { return d.seconds_on_one / d.seconds; }
};

constexpr unsigned width = 16384;

TEST_F(Decisions, VectorsAreCutAndStay) {
  const std::uint64_t n = gib / 4;
  const decision d = decide("vecadd", {n / 256, 1, 1}, {256, 1, 1}, empty(gib), empty(gib), empty(gib), n);
  EXPECT_EQ(d.how.parts_along, (std::array<std::uint32_t, 3>{2, 1, 1}));
  EXPECT_GT(gain(d), 1.9);
  for (const array_decision& a : d.arrays) EXPECT_EQ(a.move_to.how, array_placement::kind::stay);
}

TEST_F(Decisions, SmallGridsStayOnOneDevice) {
  const std::uint64_t n = 10000;
  const decision d = decide("vecadd", {40, 1, 1}, {256, 1, 1}, empty(4 * n), empty(4 * n), empty(4 * n), n);
  EXPECT_FALSE(d.is_spread());
  EXPECT_NE(d.reason.find("short"), std::string::npos) << d.reason;
}

TEST_F(Decisions, StencilsAreCutAlongTheSlowestAxis) {
  const decision two =
      decide("stencil2D", {width / 32, width / 8, 1}, {32, 8, 1}, empty(gib), empty(gib), width, width);
  EXPECT_EQ(two.how.parts_along, (std::array<std::uint32_t, 3>{1, 2, 1}));
  EXPECT_GT(gain(two), 1.9);
  const decision three =
      decide("stencil3D", {32, 128, 512}, {32, 8, 1}, empty(2 * gib), empty(2 * gib), 1024, 1024, 512);
  EXPECT_EQ(three.how.parts_along, (std::array<std::uint32_t, 3>{1, 1, 2}));
  EXPECT_GT(gain(three), 1.9);
}

TEST_F(Decisions, AMatrixThatAllBlocksReadIsReplicatedIfThatPays) {
  const std::uint64_t bytes = 8192ULL * 8192 * 4;
  const decision d =
      decide("sgemv", {1024, 1, 1}, {32, 8, 1}, empty(4 * 8192), empty(bytes), empty(4 * 8192), 8192, 8192);
  ASSERT_TRUE(d.is_spread());
  EXPECT_EQ(d.arrays[2].move_to.how, array_placement::kind::replicated);
  EXPECT_TRUE(d.arrays[2].use_replica);
  EXPECT_FALSE(d.arrays[0].use_replica);
}

TEST_F(Decisions, ATransposeOfFullArraysNeverLosesToOneDevice) {
  kernel_array &out = on_.allocate(gib, true), &in = on_.allocate(gib, true);
  const decision d = decide("transpose", {width / 32, width / 32, 1}, {32, 8, 1}, out, in, width);
  EXPECT_FALSE(d.is_spread());
  EXPECT_GE(gain(d), 0.95);
}

TEST_F(Decisions, ElementsOfRowsAreDealtOutByColumns) {
  const unsigned rows = 1U << 22U, elements = 32;
  kernel_array& values = empty(std::uint64_t{rows} * elements * 4);
  kernel_array& columns = empty(std::uint64_t{rows} * elements * 4);
  const decision d = decide("spmv_ell", {rows / 256, 1, 1}, {256, 1, 1}, empty(4ULL * rows), values, columns,
                            empty(4ULL * rows), rows, elements);
  ASSERT_TRUE(d.is_spread());
  EXPECT_EQ(d.arrays[1].move_to.how, array_placement::kind::cyclic);
  EXPECT_EQ(d.arrays[1].move_to.run, 4ULL * rows / 2);
  EXPECT_EQ(d.arrays[2].move_to, d.arrays[1].move_to);
  EXPECT_EQ(d.arrays[3].move_to.how, array_placement::kind::replicated);
  EXPECT_GT(gain(d), 1.9);
}

TEST_F(Decisions, WhatIsWrittenIsNeverReplicated) {
  const unsigned n = 1U << 22U;
  kernel_array& both = empty(16ULL * n);
  const std::uint64_t count = n;
  const decision d = decide("vecadd", {n / 256, 1, 1}, {256, 1, 1}, both, both, both, count);
  for (const array_decision& a : d.arrays) {
    EXPECT_NE(a.move_to.how, array_placement::kind::replicated);
    EXPECT_FALSE(a.use_replica);
  }
}

TEST_F(Decisions, ASearchWithScatteredWritesStaysOnOneDevice) {
  const unsigned n = 1U << 22U;
  const decision d = decide("bfs_expand", {n / 256, 1, 1}, {256, 1, 1}, on_.allocate(4ULL * n + 4, true),
                            on_.allocate(128ULL * n, true), on_.allocate(n, true), on_.allocate(n, true),
                            on_.allocate(n, true), on_.allocate(4ULL * n, true), n);
  EXPECT_FALSE(d.is_spread());
  EXPECT_GE(gain(d), 0.95);
}

// Few nodes are in the frontier of a search, so a level of a small search takes less time than launching on more
// devices. The rates are those of soft devices.
TEST_F(Decisions, ASmallSearchStaysOnOneDevice) {
  machine slow = program_on::machine_of(2);
  slow.local_rate = slow.read_rate = slow.write_rate = slow.host_rate = 1e10;
  slow.instruction_rate = 1e9;
  slow.launch_seconds = 5e-5;
  program_on on(slow);
  const unsigned n = 1024;
  kernel_array &first = on.allocate(4ULL * n + 4), &edges = on.allocate(32ULL * n), &frontier = on.allocate(n),
               &next = on.allocate(n), &visited = on.allocate(n), &cost = on.allocate(4ULL * n), &flag = on.allocate(4);
  const kernel_model expand(program_, "bfs_expand"), advance(program_, "bfs_advance");
  program_on::arguments of_expand(*program_->find_kernel("bfs_expand")),
      of_advance(*program_->find_kernel("bfs_advance"));
  of_expand << first << edges << frontier << next << visited << cost << n;
  of_advance << frontier << next << visited << flag << n;
  for (int level = 0; level < 20; ++level) {
    const decision& d = on.decide(expand, {n / 256, 1, 1}, {256, 1, 1}, of_expand);
    EXPECT_FALSE(d.is_spread()) << level << ": " << d.reason;
    const decision& e = on.decide(advance, {n / 256, 1, 1}, {256, 1, 1}, of_advance);
    EXPECT_FALSE(e.is_spread()) << level << ": " << e.reason;
  }
}

TEST_F(Decisions, MorePartsThanOneAxisHasAreCutAlongTwo) {
  program_on four(4);
  const kernel_model model(program_, "sgemm");
  program_on::arguments arguments(*program_->find_kernel("sgemm"));
  const int n = 2 * 64;
  arguments << four.allocate(4ULL * n * n) << four.allocate(4ULL * n * n) << four.allocate(4ULL * n * n) << n;
  const decision& d = four.decide(model, {2, 2, 1}, {16, 16, 1}, arguments);
  const bool has_both = std::any_of(d.alternatives.begin(), d.alternatives.end(), [](const alternative& a) {
    return a.name.find("cut along x and y") != std::string::npos;
  });
  EXPECT_TRUE(has_both);
}

}  // namespace
}  // namespace hpe::spread::test
