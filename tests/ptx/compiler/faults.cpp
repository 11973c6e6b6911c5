// The message of a wrong address names the thread that used the address, although native code ran the thread together
// with others.

#include <sys/mman.h>

#include <csignal>

#include "tests/ptx/programs_fixture.h"

namespace hpe::ptx::test {
namespace {

void land(int, siginfo_t* info, void*) {
  land_page_fault(reinterpret_cast<std::uint64_t>(info->si_addr));
  std::signal(SIGSEGV, SIG_DFL);
}

class Faults : public programs_fixture {
 protected:
  void SetUp() override {
    programs_fixture::SetUp();
    struct sigaction action {};
    action.sa_sigaction = land;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, &before_);
    closed_ = static_cast<char*>(::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(closed_, MAP_FAILED);
  }
  void TearDown() override {
    if (closed_ == nullptr) return;
    ::munmap(closed_, bytes);
    sigaction(SIGSEGV, &before_, nullptr);
  }

  // Returns the thread that the message about a wrong address names, in a launch of 96 threads. The body sets %p2 in
  // the thread that is to use a wrong address. %r1: thread index; %r2: lane; %rd1: the thread's element of an array;
  // %rd4: a wrong address.
  std::optional<unsigned> blamed(const std::string& body) {
    kernel_runner runner({R"(.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 closed) {
  .reg .pred %p<6>;
  .reg .b32 %r<12>;
  .reg .b64 %rd<8>;
  .shared .align 4 .b32 own[96];
  ld.param.u64 %rd1, [out];
  ld.param.u64 %rd4, [closed];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %laneid;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd1, %rd1, %rd2;
  setp.eq.u32 %p2, %r1, 200;
)" + body + R"(
  selp.b64 %rd5, %rd4, %rd1, %p2;
  ld.global.u32 %r9, [%rd5];
  add.u32 %r9, %r9, 1;
  st.global.u32 [%rd1], %r9;
done:
  ret;
})"},
                         GetParam());
    const auto stopped = runner.launch("k", {{1}, {96}}, runner.upload(std::vector<unsigned>(96)), closed_ + 2048);
    if (!stopped) return std::nullopt;
    EXPECT_EQ(stopped->why, trap::reason::address);
    EXPECT_EQ(stopped->address, reinterpret_cast<std::uint64_t>(closed_ + 2048));
    return stopped->thread.x;
  }

  static constexpr std::size_t bytes = 4096;
  char* closed_ = nullptr;

 private:
  struct sigaction before_ {};
};

TEST_P(Faults, OfOneThread) {
  EXPECT_EQ(blamed("setp.eq.u32 %p2, %r1, 43;"), 43U);
  EXPECT_EQ(blamed(""), std::nullopt);
}

TEST_P(Faults, BehindAMeetingOfAllLanes) {
  EXPECT_EQ(blamed("shfl.sync.bfly.b32 %r3, %r1, 1, 31, -1;\nsetp.eq.u32 %p2, %r3, 42;"), 43U);
}

TEST_P(Faults, AfterOtherLanesHaveEnded) {
  EXPECT_EQ(blamed("setp.ge.u32 %p1, %r2, 20;\n@%p1 bra done;\nshfl.sync.bfly.b32 %r3, %r1, 1, 31, 0xfffff;\n"
                   "setp.eq.u32 %p2, %r3, 42;"),
            43U);
}

// Each group of 8 lanes votes separately. If all lanes took part in one vote, no thread would count 5 votes.
TEST_P(Faults, BehindMeetingsOfPartsOfTheWarp) {
  EXPECT_EQ(blamed("and.b32 %r3, %r2, 24;\nmov.u32 %r4, 255;\nshl.b32 %r4, %r4, %r3;\nsetp.gt.u32 %p1, %r1, 42;\n"
                   "vote.sync.ballot.b32 %r5, %p1, %r4;\npopc.b32 %r6, %r5;\nsetp.eq.u32 %p3, %r6, 5;\n"
                   "setp.eq.u32 %p4, %r2, 11;\nand.pred %p2, %p3, %p4;"),
            43U);
}

TEST_P(Faults, BehindMeetingsInABranch) {
  EXPECT_EQ(blamed("setp.lt.u32 %p1, %r2, 8;\n@%p1 bra small;\nshfl.sync.bfly.b32 %r3, %r1, 1, 31, 0xffffff00;\n"
                   "bra join;\nsmall:\nshfl.sync.bfly.b32 %r3, %r1, 2, 31, 0xff;\njoin:\nsetp.eq.u32 %p2, %r3, 42;"),
            43U);
}

// To find the thread, hpe runs lanes again, but not lanes that wait at another place. If hpe ran these lanes again,
// they would use an address that their first run has increased.
TEST_P(Faults, WhileOtherLanesWait) {
  const char* const elsewhere =
      "setp.lt.u32 %p1, %r2, 5;\n@%p1 bra elsewhere;\n{}\nsetp.eq.u32 %p2, %r1, 43;\n"
      "bra join;\nelsewhere:\nadd.u64 %rd1, %rd1, %rd4;\n"
      "bar.sync 1, 32;\nsub.u64 %rd1, %rd1, %rd4;\njoin:\n";
  for (const char* const meeting : {"", "bar.warp.sync 0xffffffe0;", "bar.sync 2, 64;"})
    EXPECT_EQ(blamed(fmt::format(fmt::runtime(elsewhere), meeting)), 43U) << meeting;
}

// Lanes that have left before the fault have the registers of the place where they wait: %rd6 is a wrong address there.
TEST_P(Faults, AfterOtherLanesHaveLeft) {
  std::string arithmetic = "mov.u32 %r5, %r1;\n";  // so much that the threads run together
  for (unsigned n = 0; n < 40; ++n) arithmetic += fmt::format("mad.lo.u32 %r5, %r5, 5, {};\n", n);
  const std::string start = "mov.u64 %rd6, %rd1;\nbar.sync 0;\nst.global.u32 [%rd6], %r1;\n" + arithmetic +
                            "st.global.u32 [%rd1], %r5;\nsetp.lt.u32 %p1, %r2, 5;\n";
  const std::string leave = "mov.u64 %rd6, 8;\nbar.sync 1, 32;\nst.global.u64 [%rd6], %rd6;\n";
  const std::string stay = "setp.eq.u32 %p2, %r1, 43;\n";
  EXPECT_EQ(blamed(start + "@%p1 bra left;\n" + stay + "bra join;\nleft:\n" + leave + "join:\n"), 43U);
  EXPECT_EQ(blamed(start + "@!%p1 bra right;\n" + leave + "bra join;\nright:\n" + stay + "join:\n"), 43U);
}

// The thread that used a wrong address got it from a counter, so no thread uses it in the second run. In the second
// run, the threads stop at the barriers and votes at which they stopped in the first run, because the code after these
// never ran.
TEST_P(Faults, DoNotRunCodeThatNeverRan) {
  std::string arithmetic;  // so much that the threads run together
  for (unsigned n = 0; n < 40; ++n) arithmetic += fmt::format("mad.lo.u32 %r1, %r1, 5, {};\n", n);
  // Lanes do not pass meetings (barriers and votes) in this loop, nor in the code before the loop.
  const char* const loop =
      "again:\natom.global.or.b32 %r6, [%rd1+16], 0;\nsetp.ne.u32 %p4, %r6, 0;\n"
      "vote.sync.any.pred %p5, %p4, -1;\n@%p5 bra again;";
  for (const auto& [meeting, behind] :
       {std::pair{"@%p3 bar.warp.sync -1;", ""}, {"bar.sync 0;", ""}, {"vote.sync.any.pred %p4, %p3, -1;", loop}}) {
    kernel_runner runner({fmt::format(R"(.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 closed) {{
  .reg .pred %p<6>;
  .reg .b32 %r<12>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [out];
  ld.param.u64 %rd4, [closed];
  mov.u32 %r1, %tid.x;
  shfl.sync.bfly.b32 %r3, %r1, 1, 31, -1;
  setp.lt.u32 %p3, %r3, 99;
  {}
  st.global.u32 [%rd1+20], %r1;
  atom.global.add.u32 %r4, [%rd1], 1;
  setp.eq.u32 %p2, %r4, 11;
  selp.b64 %rd5, %rd4, %rd1, %p2;
  ld.global.u32 %r9, [%rd5+8];
  st.global.u32 [%rd1+12], %r9;
  {}
  mov.u32 %r5, 1;
  st.global.u32 [%rd1+4], %r5;
  {}
  ret;
}})",
                                      arithmetic, meeting, behind)},
                         GetParam());
    auto* const out = runner.upload(std::vector<unsigned>(8));
    const auto stopped = runner.launch("k", {{1}, {32}}, out, closed_ + 2048);
    ASSERT_TRUE(stopped);
    EXPECT_EQ(stopped->why, trap::reason::address);
    EXPECT_EQ(out[1], 0) << meeting;
  }
}

INSTANTIATE_FOR_ENGINES_AND_HANDOVER(Faults);

}  // namespace
}  // namespace hpe::ptx::test
