// A warp waits in a loop for a value that another warp of its block writes, and the other warp first waits at a barrier
// for a third warp. Each engine must let all three warps run.

#include <unistd.h>

#include <csignal>

#include "tests/ptx/programs_fixture.h"

namespace hpe::ptx::test {
namespace {

// Ends the test program if a kernel hangs.
class WaitingWarps : public programs_fixture {
 protected:
  static constexpr unsigned seconds = 60;  // the kernels take milliseconds

  void SetUp() override {
    programs_fixture::SetUp();
    std::signal(SIGALRM, [](int) {
      constexpr std::string_view message = "the kernel hangs\n";
      [[maybe_unused]] const auto written = ::write(STDERR_FILENO, message.data(), message.size());
      ::_exit(1);
    });
    ::alarm(seconds);
  }
  void TearDown() override { ::alarm(0); }

  // `read` sets %r3 to the flag.
  void wait_by(const std::string& read) {
    kernel_runner runner({R"(.version 8.6
.target sm_90
.address_size 64
.shared .align 4 .b32 flag[1];
.shared .align 4 .b32 turns[32];
.func (.param .b32 value) look(.param .b64 address) {
  .reg .b32 %r<2>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [address];
  ld.volatile.u32 %r1, [%rd1];
  st.param.b32 [value], %r1;
  ret;
}
.func (.param .b32 value) look_together(.param .b64 address) {
  .reg .b32 %r<2>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [address];
  atom.or.b32 %r1, [%rd1], 0;
  bar.warp.sync -1;
  st.param.b32 [value], %r1;
  ret;
}
.visible .entry k(.param .u64 out) {
  .reg .pred %p<4>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [out];
  mov.u64 %rd4, flag;
  cvta.shared.u64 %rd4, %rd4;
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, 0;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra start;
  st.shared.u32 [flag], %r2;
start:
  bar.sync 0;
  shl.b32 %r5, %r1, 2;
  setp.ge.u32 %p1, %r1, 32;
  @%p1 bra writer;
again:
)" + read + R"(
  setp.eq.u32 %p2, %r3, 0;
  @%p2 bra again;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd1, %rd1, %rd2;
  st.global.u32 [%rd1], %r3;
  ret;
writer:
  bar.sync 1, 64;
  setp.ne.u32 %p1, %r1, 64;
  @%p1 bra done;
  mov.u32 %r4, 5;
  st.shared.u32 [flag], %r4;
done:
  ret;
})"},
                         GetParam());
    runner.allow_races();
    auto* const out = runner.upload(std::vector<unsigned>(32));
    EXPECT_RUNS(runner.launch("k", {{1}, {96}}, out));
    for (unsigned n = 0; n < 32; ++n) EXPECT_EQ(out[n], 5) << n;
  }
};

TEST_P(WaitingWarps, ReadWithOrder) {
  wait_by("ld.volatile.shared.u32 %r3, [flag];");
  wait_by("ld.acquire.cta.shared.u32 %r3, [flag];");
  wait_by("atom.shared.or.b32 %r3, [flag], 0;");
}

TEST_P(WaitingWarps, ReadBetweenBarriersOfTheWarp) {
  wait_by("bar.warp.sync -1;\nld.shared.u32 %r3, [flag];");
  wait_by("bar.warp.sync -1;\nld.volatile.shared.u32 %r3, [flag];");
}

TEST_P(WaitingWarps, WriteWhileTheyWait) {
  wait_by("bar.warp.sync -1;\nld.shared.u32 %r3, [flag];\nst.shared.u32 [turns+8], %r1;");
  wait_by("bar.warp.sync -1;\nld.shared.u32 %r3, [flag];\nadd.u32 %r2, %r2, 1;\nst.shared.u32 [turns+8], %r2;");
}

TEST_P(WaitingWarps, ReadAndVote) {
  wait_by(
      "ld.shared.u32 %r4, [flag];\nsetp.ne.u32 %p3, %r4, 0;\nvote.sync.any.pred %p1, %p3, -1;\n"
      "selp.u32 %r3, 5, 0, %p1;");
  wait_by("ld.shared.u32 %r4, [flag];\nshfl.sync.idx.b32 %r3, %r4, 0, 31, -1;");
}

TEST_P(WaitingWarps, ReadBehindAFence) { wait_by("membar.cta;\nld.shared.u32 %r3, [flag];"); }

TEST_P(WaitingWarps, CallAFunctionThatReads) {
  for (const char* const function : {"look", "look_together"})
    wait_by(
        fmt::format("{{\n.param .b64 a;\n.param .b32 v;\nst.param.b64 [a], %rd4;\ncall.uni (v), {}, (a);\n"
                    "ld.param.b32 %r3, [v];\n}}",
                    function));
}

// Warp 0 votes again and again, while the other warps wait in loops.
TEST_P(WaitingWarps, VoteWhileOthersWaitInLoops) {
  kernel_runner runner({R"(.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out) {
  .reg .pred %p<4>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<6>;
  .shared .align 4 .b32 a;
  .shared .align 4 .b32 b;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, 1;
  mov.u32 %r5, 0;
  st.shared.u32 [a], %r5;
  st.shared.u32 [b], %r5;
  bar.sync 0;
  setp.ge.u32 %p1, %r1, 32;
  @%p1 bra others;
again:
  ld.shared.u32 %r3, [a];
  setp.ne.u32 %p2, %r3, 0;
  vote.sync.any.pred %p3, %p2, -1;
  @!%p3 bra again;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd1, %rd1, %rd2;
  st.global.u32 [%rd1], %r2;
  ret;
others:
  setp.ge.u32 %p1, %r1, 64;
  @%p1 bra last;
wait:
  ld.volatile.shared.u32 %r3, [b];
  setp.eq.u32 %p2, %r3, 0;
  @%p2 bra wait;
  st.shared.u32 [a], %r2;
  ret;
last:
  st.shared.u32 [b], %r2;
  ret;
})"},
                       GetParam());
  runner.allow_races();
  auto* const out = runner.upload(std::vector<unsigned>(32));
  EXPECT_RUNS(runner.launch("k", {{1}, {96}}, out));
  for (unsigned n = 0; n < 32; ++n) EXPECT_EQ(out[n], 1) << n;
}

// Block 0 reads what block 1 writes. `read` sets %r3 in all threads.
class WaitingBlocks : public WaitingWarps {
 protected:
  void wait_by(const std::string& read) {
    kernel_runner runner({R"(.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 flag) {
  .reg .pred %p<4>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<6>;
  .shared .align 4 .b32 copy;
  ld.param.u64 %rd1, [flag];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  setp.ne.u32 %p1, %r2, 0;
  @%p1 bra writer;
again:
)" + read + R"(
  setp.eq.u32 %p2, %r3, 0;
  @%p2 bra again;
  mov.u32 %r4, 7;
  st.global.u32 [%rd1+4], %r4;
  ret;
writer:
  mov.u32 %r4, 5;
  st.global.u32 [%rd1], %r4;
  ret;
})"},
                         GetParam());
    runner.allow_races();
    auto* const flag = runner.upload(std::vector<unsigned>(2));
    EXPECT_RUNS(runner.launch("k", {{2}, {64}}, flag));
    EXPECT_EQ(flag[1], 7) << read;
  }
};

TEST_P(WaitingBlocks, ReadPastTheCache) {
  wait_by("ld.global.cv.u32 %r3, [%rd1];");
  wait_by("ld.global.cg.u32 %r3, [%rd1];");
}

TEST_P(WaitingBlocks, ReadBehindABarrier) { wait_by("bar.sync 0;\nld.global.u32 %r3, [%rd1];"); }

TEST_P(WaitingBlocks, ReadInOneThreadBetweenBarriers) {
  wait_by(
      "bar.sync 0;\nsetp.ne.u32 %p3, %r1, 0;\n@%p3 bra join;\nld.global.u32 %r5, [%rd1];\n"
      "st.shared.u32 [copy], %r5;\njoin:\nbar.sync 0;\nld.shared.u32 %r3, [copy];");
}

TEST_P(WaitingBlocks, ReadAndVote) {
  wait_by(
      "ld.global.u32 %r4, [%rd1];\nsetp.ne.u32 %p3, %r4, 0;\nvote.sync.any.pred %p1, %p3, -1;\n"
      "selp.u32 %r3, 5, 0, %p1;");
}

INSTANTIATE_FOR_ENGINES_AND_HANDOVER(WaitingWarps);
INSTANTIATE_FOR_ENGINES_AND_HANDOVER(WaitingBlocks);

}  // namespace
}  // namespace hpe::ptx::test
