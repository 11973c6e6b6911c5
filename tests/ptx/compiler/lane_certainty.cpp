// Native code tests whether the value of lane 0 is conclusive for all lanes (lane_certainty.cpp), and uses registers
// that have the same value in all threads of a block (block_values.h). Kernels that depend on these tests and registers
// return the same as the same computation in C++.

#include <fmt/format.h>

#include <functional>

#include "tests/ptx/programs_fixture.h"

namespace hpe::ptx::test {
namespace {

using Certainty = programs_fixture;  // NOLINT(readability-identifier-naming): the name of a suite

constexpr unsigned threads = 64;

// out[tid] = whether the condition, one comparison or a combination of two, holds for base + tid * step.
std::string kernel_text(const std::string& name, const comparison& how, const char* type, int step,
                        const char* joined) {
  return fmt::format(R"(
.visible .entry {}(.param .u64 out, .param .u32 base, .param .u32 bound, .param .u32 other) {{
  .reg .pred %p<5>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [base];
  ld.param.u32 %r2, [bound];
  ld.param.u32 %r3, [other];
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r4, {}, %r1;
  mul.wide.u32 %rd2, %r4, 4;
  add.u64 %rd3, %rd1, %rd2;
  setp.{}.{} %p1, %r5, %r2;
  setp.{}.{} %p2, %r3, %r5;
  {}.pred %p3, %p1, %p2;
  not.pred %p4, %p3;
  @%p4 bra no;
  mov.u32 %r6, 1;
  bra write;
no:
  mov.u32 %r6, 2;
write:
  st.global.u32 [%rd3], %r6;
  ret;
}}
)",
                     name, step, how.name, type, how.name, type, joined);
}

TEST_P(Certainty, AgreesWithEachLane) {
  const std::string header = ".version 8.6\n.target sm_90\n.address_size 64\n";
  for (const char* const joined : {"or", "and"}) {
    std::string text = header;
    const auto name_of = [](const comparison& how, const char* type, int step) {
      return fmt::format("k_{}_{}_{}", how.name, type, step + 10);
    };
    for (const comparison& how : comparisons())
      for (const char* const type : {"s32", "u32"})
        for (const int step : {1, -3}) text += kernel_text(name_of(how, type, step), how, type, step, joined);
    kernel_runner runner({text}, GetParam());
    auto* const out = runner.upload(std::vector<unsigned>(threads));
    for (const comparison& how : comparisons())
      for (const bool is_signed : {false, true})
        for (const int step : {1, -3})
          for (const std::uint32_t base : {0U, 5U, 0x7ffffff8U, 0x80000007U, 0xfffffff1U, 1000U})
            for (const std::uint32_t bound : {0U, 20U, 0x7fffffffU, 0x80000000U, 1031U})
              for (const std::uint32_t other : {bound, 40U}) {
                const std::string name = name_of(how, is_signed ? "s32" : "u32", step);
                ASSERT_FALSE(runner.launch(name, {{1}, {threads}}, out, base, bound, other));
                for (unsigned t = 0; t < threads; ++t) {
                  const std::uint32_t x = base + t * static_cast<std::uint32_t>(step);
                  const auto value = [&](std::uint32_t v) -> std::int64_t {
                    return is_signed ? std::int64_t{static_cast<std::int32_t>(v)} : std::int64_t{v};
                  };
                  const bool a = how.holds(value(x), value(bound)), b = how.holds(value(other), value(x));
                  const bool holds = joined[0] == 'o' ? a || b : a && b;
                  ASSERT_EQ(out[t], holds ? 1 : 2) << name << " " << base << " " << bound << " " << other << " " << t;
                }
              }
  }
}

const char* const text = R"(.version 8.6
.target sm_90
.address_size 64
// out[4 (tid - 3)] += tid for indices below 240. The indices of threads 0 to 2 wrap around to large numbers.
.visible .entry apart(.param .u64 out) {
  .reg .pred %p<2>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  mul.lo.u32 %r2, %r1, 4;
  sub.u32 %r2, %r2, 12;
  mul.wide.u32 %rd2, %r2, 4;
  add.u64 %rd3, %rd1, %rd2;
  setp.ge.u32 %p1, %r2, 240;
  @%p1 bra done;
  ld.global.u32 %r3, [%rd3];
  add.u32 %r3, %r3, %r1;
  st.global.u32 [%rd3], %r3;
done:
  ret;
}
// Counts tid % 4 in shared memory, all lanes at once; out[n] = the count of n.
.visible .entry counts(.param .u64 out) {
  .reg .pred %p<2>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<4>;
  .shared .align 4 .b8 bins[256];
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  shl.b32 %r2, %r1, 2;
  mov.u32 %r3, bins;
  add.u32 %r4, %r3, %r2;
  mov.u32 %r5, 0;
  st.shared.u32 [%r4], %r5;
  bar.sync 0;
  and.b32 %r6, %r2, 12;
  add.u32 %r6, %r3, %r6;
  atom.shared.add.u32 %r7, [%r6], 1;
  bar.sync 0;
  ld.shared.u32 %r7, [%r4];
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r7;
  ret;
}
// Two registers that change from barrier to barrier: %r3 has the same value in all threads of the block; %r4 does not,
// because only some threads change it. out[tid] = 100 %r3 + %r4.
.visible .entry rounds(.param .u64 out, .param .u32 count) {
  .reg .pred %p<3>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r2, [count];
  mov.u32 %r1, %tid.x;
  mov.u32 %r3, 0;
  mov.u32 %r4, 0;
again:
  bar.sync 0;
  add.u32 %r3, %r3, 1;
  shl.b32 %r5, %r3, 3;
  setp.lt.u32 %p1, %r1, %r5;
  @%p1 bra next;
  add.u32 %r4, %r4, 1;
next:
  setp.lt.u32 %p2, %r3, %r2;
  @%p2 bra again;
  mad.lo.u32 %r6, %r3, 100, %r4;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r6;
  ret;
}
)";

TEST_P(Certainty, StridedAddressesMayOverflow) {
  kernel_runner runner({text}, GetParam());
  unsigned* const out = runner.upload(std::vector<unsigned>(256, 1000));
  ASSERT_FALSE(runner.launch("apart", {{1}, {80}}, out));
  for (unsigned n = 0; n < 256; ++n) EXPECT_EQ(out[n], n < 240 && n % 4 == 0 ? 1000 + n / 4 + 3 : 1000) << n;
}

TEST_P(Certainty, AtomicsOfAllLanesCountEachLane) {
  kernel_runner runner({text}, GetParam());
  unsigned* const out = runner.upload(std::vector<unsigned>(threads, 1000));
  ASSERT_FALSE(runner.launch("counts", {{1}, {threads}}, out));
  for (unsigned n = 0; n < threads; ++n) EXPECT_EQ(out[n], n < 4 ? threads / 4 : 0) << n;
}

TEST_P(Certainty, BlocksHaveValuesInCommonAndOthersOfEachThread) {
  kernel_runner runner({text}, GetParam());
  for (const dimensions block : {dimensions{64}, dimensions{16, 4}, dimensions{40}, dimensions{7, 9}}) {
    const auto all = static_cast<unsigned>(block.count());
    unsigned* const out = runner.upload(std::vector<unsigned>(all));
    ASSERT_FALSE(runner.launch("rounds", {{1}, block}, out, 6U));
    for (unsigned n = 0; n < all && n < block.x; ++n) {
      unsigned others = 0;
      for (unsigned round = 1; round <= 6; ++round) others += n < 8 * round ? 0 : 1;
      EXPECT_EQ(out[n], 600 + others) << n;
    }
  }
}

INSTANTIATE_FOR_ENGINES(Certainty);

}  // namespace
}  // namespace hpe::ptx::test
