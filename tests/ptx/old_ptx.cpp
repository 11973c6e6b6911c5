// Tests PTX that old GPUs and compilers allowed. PTX for sm_1x may omit modifiers that newer PTX must contain, and each
// short instruction must return the same bits as its full form. A lane that runs in lockstep need not be in its own
// mask.

#include <bit>
#include <cmath>

#include "hpe/error.hpp"
#include "tests/ptx/programs_fixture.h"

namespace hpe::ptx::test {
namespace {

using OldPtx = programs_fixture;  // NOLINT(readability-identifier-naming): the name of a suite

struct form {
  std::string old, full;
};

// %f1 to %f3 and %fd1 to %fd3 are numbers; the result must be in %f0 or %fd0.
const std::vector<form>& forms() {
  static const std::vector<form> all = {
      {"mad.f32 %f0, %f1, %f2, %f3;", "fma.rn.ftz.f32 %f0, %f1, %f2, %f3;"},
      {"mad.sat.f32 %f0, %f1, %f2, %f3;", "fma.rn.ftz.sat.f32 %f0, %f1, %f2, %f3;"},
      {"mad.rz.f32 %f0, %f1, %f2, %f3;", "fma.rz.ftz.f32 %f0, %f1, %f2, %f3;"},
      {"mad.f64 %fd0, %fd1, %fd2, %fd3;", "fma.rn.f64 %fd0, %fd1, %fd2, %fd3;"},
      {"add.f32 %f0, %f1, %f2;", "add.ftz.f32 %f0, %f1, %f2;"},
      {"mul.f32 %f0, %f1, %f2;", "mul.ftz.f32 %f0, %f1, %f2;"},
      {"min.f32 %f0, %f1, %f2;", "min.ftz.f32 %f0, %f1, %f2;"},
      {"neg.f32 %f0, %f1;", "neg.ftz.f32 %f0, %f1;"},
      {"add.f64 %fd0, %fd1, %fd2;", "add.f64 %fd0, %fd1, %fd2;"},
      {"div.f32 %f0, %f1, %f2;", "div.approx.ftz.f32 %f0, %f1, %f2;"},
      {"div.full.f32 %f0, %f1, %f2;", "div.full.ftz.f32 %f0, %f1, %f2;"},
      {"div.f64 %fd0, %fd1, %fd2;", "div.rn.f64 %fd0, %fd1, %fd2;"},
      {"rcp.f32 %f0, %f1;", "rcp.approx.ftz.f32 %f0, %f1;"},
      {"rcp.f64 %fd0, %fd1;", "rcp.rn.f64 %fd0, %fd1;"},
      {"sqrt.f32 %f0, %f1;", "sqrt.approx.ftz.f32 %f0, %f1;"},
      {"sqrt.f64 %fd0, %fd1;", "sqrt.rn.f64 %fd0, %fd1;"},
      {"rsqrt.f32 %f0, %f1;", "rsqrt.approx.ftz.f32 %f0, %f1;"},
      {"rsqrt.f64 %fd0, %fd1;", "rsqrt.approx.f64 %fd0, %fd1;"},
      {"sin.f32 %f0, %f1;", "sin.approx.ftz.f32 %f0, %f1;"},
      {"cos.f32 %f0, %f1;", "cos.approx.ftz.f32 %f0, %f1;"},
      {"ex2.f32 %f0, %f1;", "ex2.approx.ftz.f32 %f0, %f1;"},
      {"lg2.f32 %f0, %f1;", "lg2.approx.ftz.f32 %f0, %f1;"},
  };
  return all;
}

std::string text_of(const std::string& target, const std::string& body) {
  return ".version 1.4\n.target " + target + R"(
.entry k (.param .u64 in, .param .u64 out) {
  .reg .u64 %rd<6>;
  .reg .u32 %r<2>;
  .reg .f32 %f<4>;
  .reg .f64 %fd<4>;
  ld.param.u64 %rd1, [in];
  ld.param.u64 %rd2, [out];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 24;
  add.u64 %rd1, %rd1, %rd3;
  mul.wide.u32 %rd3, %r1, 16;
  add.u64 %rd2, %rd2, %rd3;
  ld.global.f64 %fd1, [%rd1];
  ld.global.f64 %fd2, [%rd1+8];
  ld.global.f64 %fd3, [%rd1+16];
  ld.global.f32 %f1, [%rd1];
  ld.global.f32 %f2, [%rd1+8];
  ld.global.f32 %f3, [%rd1+16];
  mov.f32 %f0, 0f00000000;
  mov.f64 %fd0, 0d0000000000000000;
  )" + body +
         R"(
  st.global.f32 [%rd2], %f0;
  st.global.f64 [%rd2+8], %fd0;
  exit;
}
)";
}

TEST_P(OldPtx, MeansWhatTheFullFormMeans) {
  constexpr unsigned threads = 256;
  std::vector<std::uint64_t> in(3 * threads);
  for (std::uint64_t& each : in) {
    // The lower half is a float; one in four of these is subnormal. The upper half makes the 64 bits a double of
    // ordinary magnitude.
    const std::uint32_t exponent = random_() % 4 == 0 ? 0 : 110 + random_() % 30;
    const std::uint32_t single = (random_() & 0x807fffffU) | exponent << 23;
    each = std::uint64_t{0x3ff00000U + (random_() & 0xfffffU)} << 32 | single;
  }
  for (const form& each : forms()) {
    std::vector<std::vector<std::uint64_t>> results;
    for (const auto& [target, body] : {std::pair("sm_13", each.old), std::pair("sm_75", each.full)}) {
      kernel_runner runner({text_of(target, body)}, GetParam());
      auto* const out = static_cast<std::uint64_t*>(runner.allocate(16 * threads));
      EXPECT_RUNS(runner.launch("k", {{1}, {threads}}, runner.upload(in), out));
      results.emplace_back(out, out + 2 * threads);
    }
    EXPECT_EQ(results[0], results[1]) << each.old;
  }
}

TEST_P(OldPtx, NewerPtxMustSayItsRounding) {
  for (const char* const body : {"mad.f32 %f0, %f1, %f2, %f3;", "div.f32 %f0, %f1, %f2;", "sin.f32 %f0, %f1;"})
    EXPECT_THROW(kernel_runner({text_of("sm_20", body)}, GetParam()), error) << body;
}

// out[thread] = %r3, which `meeting` computes from the thread's number in %r1, the thread's parity in %r4 and %p, and
// the mask in %r2.
std::string kernel_with_mask(const std::string& mask, const std::string& meeting) {
  return R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 out) {
  .reg .b32 %r<6>;
  .reg .b64 %rd<3>;
  .reg .pred %p;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  )" + mask +
         "\n  and.b32 %r4, %r1, 1;\n  setp.ne.u32 %p, %r4, 0;\n  " + meeting +
         R"(
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd1, %rd1, %rd2;
  st.global.u32 [%rd1], %r3;
  ret;
}
)";
}

TEST_P(OldPtx, LanesInLockstepNeedNotBeInTheirMask) {
  // First, one mask for all lanes that names half of them; then, for each lane, a mask that names only its neighbour.
  for (const char* const mask :
       {"mov.u32 %r2, 0xffff;", "xor.b32 %r4, %r1, 1;\nmov.u32 %r5, 1;\nshl.b32 %r2, %r5, %r4;"}) {
    const std::string shuffle = kernel_with_mask(mask, "shfl.sync.down.b32 %r3, %r1, 10, 31, %r2;");
    kernel_runner in_lockstep({shuffle}, GetParam(), warp_order::lockstep);
    auto* const out = static_cast<std::uint32_t*>(in_lockstep.allocate(64 * 4));
    EXPECT_RUNS(in_lockstep.launch("k", {{1}, {64}}, out));
    for (std::uint32_t t = 0; t < 64; ++t) EXPECT_EQ(out[t], t % 32 < 22 ? t + 10 : t) << mask;
    kernel_runner independent({shuffle}, GetParam());
    const auto stopped = independent.launch("k", {{1}, {64}}, out);
    ASSERT_TRUE(stopped.has_value());
    EXPECT_EQ(stopped->why, trap::reason::illegal) << stopped->message();
  }
}

// Each lane's mask names only the lanes before it, as in prefix sums by votes.
TEST_P(OldPtx, VotesInLockstepCountOnlyTheNamedLanes) {
  constexpr std::uint32_t odd = 0xaaaaaaaa;
  using u32 = std::uint32_t;
  struct meeting {
    std::string text;
    u32 (*result)(u32 lane, u32 named);
  };
  const std::string number = "\n  selp.u32 %r3, 1, 0, %p;";
  for (const meeting& m : std::vector<meeting>{
           {"vote.sync.ballot.b32 %r3, %p, %r2;", [](u32, u32 named) { return odd & named; }},
           {"vote.sync.any.pred %p, %p, %r2;" + number, [](u32 lane, u32) -> u32 { return lane > 1 ? 1 : 0; }},
           {"vote.sync.all.pred %p, %p, %r2;" + number, [](u32 lane, u32) -> u32 { return lane == 0 ? 1 : 0; }},
           {"vote.sync.uni.pred %p, %p, %r2;" + number, [](u32 lane, u32) -> u32 { return lane < 2 ? 1 : 0; }},
           {"match.any.sync.b32 %r3, %r4, %r2;",
            [](u32 lane, u32 named) { return (lane % 2 != 0 ? odd : ~odd) & named; }},
           {"mov.u32 %r4, 7;\n  match.all.sync.b32 %r3|%p, %r4, %r2;", [](u32, u32 named) { return named; }}}) {
    kernel_runner runner({kernel_with_mask("mov.u32 %r2, %lanemask_lt;", m.text)}, GetParam(), warp_order::lockstep);
    auto* const out = static_cast<u32*>(runner.allocate(64 * 4));
    EXPECT_RUNS(runner.launch("k", {{1}, {64}}, out));
    for (u32 t = 0; t < 64; ++t) EXPECT_EQ(out[t], m.result(t % 32, (1U << t % 32) - 1)) << m.text << " of " << t;
  }
}

INSTANTIATE_FOR_ENGINES_AND_HANDOVER(OldPtx);

}  // namespace
}  // namespace hpe::ptx::test
