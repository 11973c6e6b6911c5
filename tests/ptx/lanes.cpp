// Native code runs adjacent threads in lanes of vector registers. Kernels whose lanes part, overflow or share an
// address give what the interpreter gives.

#include <cstring>

#include "tests/ptx/programs_fixture.h"

namespace hpe::ptx::test {
namespace {

constexpr unsigned threads = 80;  // ten groups of lanes

const char* const text = R"(.version 8.6
.target sm_90
.address_size 64
.global .align 4 .u32 last;
.visible .entry variable(.param .u64 out) {
  .reg .b32 %r<4>;
  mov.u32 %r1, %tid.x;
  add.u32 %r2, %r1, 5;
  st.global.u32 [last], %r2;
  ret;
}
// out[tid - 3] = tid for indices below 60; those of threads 0 to 2 overflow to large ones.
.visible .entry overflow(.param .u64 out) {
  .reg .pred %p<2>;
  .reg .b32 %r<4>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  sub.u32 %r2, %r1, 3;
  mul.wide.u32 %rd2, %r2, 4;
  add.u64 %rd3, %rd1, %rd2;
  setp.ge.u32 %p1, %r2, 60;
  @%p1 bra done;
  st.global.u32 [%rd3], %r1;
done:
  ret;
}
// The steps of Collatz's sequence from tid + 1, with a barrier behind a loop that lanes leave at different times.
.visible .entry collatz(.param .u64 out) {
  .reg .pred %p<4>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  add.u32 %r2, %r1, 1;
  mov.u32 %r3, 0;
again:
  setp.eq.u32 %p1, %r2, 1;
  @%p1 bra done;
  add.u32 %r3, %r3, 1;
  and.b32 %r4, %r2, 1;
  setp.eq.u32 %p2, %r4, 0;
  @%p2 bra even;
  mad.lo.u32 %r2, %r2, 3, 1;
  bra again;
even:
  shr.u32 %r2, %r2, 1;
  bra again;
done:
  bar.sync 0;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r3;
  ret;
}
// out[tid] = tid + 7, through an address in local memory that is kept over two barriers.
.visible .entry own_address(.param .u64 out) {
  .local .align 8 .b8 depot[16];
  .reg .b32 %r<4>;
  .reg .b64 %rd<8>;
  mov.u64 %rd1, depot;
  add.u64 %rd2, %rd1, 8;
  mov.u32 %r1, %tid.x;
  add.u32 %r2, %r1, 7;
  st.local.u32 [%rd2], %r2;
  bar.sync 0;
  mul.wide.u32 %rd3, %r1, 4;
  bar.sync 0;
  ld.local.u32 %r3, [%rd2];
  ld.param.u64 %rd4, [out];
  add.u64 %rd5, %rd4, %rd3;
  st.global.u32 [%rd5], %r3;
  ret;
}
)";

using Lanes = programs_fixture;  // NOLINT(readability-identifier-naming): the name of a suite

TEST_P(Lanes, StoreToOneVariable) {
  kernel_runner runner({text}, GetParam());
  ASSERT_FALSE(runner.launch("variable", {{1}, {threads}}, runner.upload(std::vector<unsigned>(1))));
  unsigned last = 0;
  std::memcpy(&last, runner.address_of("last"), sizeof last);
  EXPECT_EQ(last, threads - 1 + 5);
}

TEST_P(Lanes, MayOverflowBetweenTwoLanes) {
  kernel_runner runner({text}, GetParam());
  unsigned* const out = runner.upload(std::vector<unsigned>(64, 1000));
  ASSERT_FALSE(runner.launch("overflow", {{1}, {threads}}, out));
  for (unsigned n = 0; n < 64; ++n) EXPECT_EQ(out[n], n < 60 ? n + 3 : 1000) << n;
}

TEST_P(Lanes, LeaveALoopAtDifferentTimes) {
  kernel_runner runner({text}, GetParam());
  unsigned* const out = runner.upload(std::vector<unsigned>(threads));
  ASSERT_FALSE(runner.launch("collatz", {{1}, {threads}}, out));
  for (unsigned n = 0; n < threads; ++n) {
    unsigned steps = 0;
    for (unsigned value = n + 1; value != 1; ++steps) value = value % 2 == 0 ? value / 2 : 3 * value + 1;
    EXPECT_EQ(out[n], steps) << n;
  }
}

TEST_P(Lanes, KeepAddressesOfTheirOwnMemory) {
  kernel_runner runner({text}, GetParam());
  unsigned* const out = runner.upload(std::vector<unsigned>(threads));
  ASSERT_FALSE(runner.launch("own_address", {{1}, {threads}}, out));
  for (unsigned n = 0; n < threads; ++n) EXPECT_EQ(out[n], n + 7) << n;
}

INSTANTIATE_FOR_ENGINES(Lanes);

}  // namespace
}  // namespace hpe::ptx::test
