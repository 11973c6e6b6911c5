// Kernels that no compiler writes: the analysis ends, and says that it knows nothing where it does not.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "tests/ptx/analysis/fixture.h"

namespace hpe::ptx::test {
namespace {

constexpr const char* head = ".version 8.0\n.target sm_80\n.address_size 64\n";

struct analysed_text {
  std::unique_ptr<program> parsed;
  analysis::kernel_analysis found;
};

analysed_text analysed(const std::string& body, const std::string& before = "") {
  analysed_text result;
  result.parsed =
      parse({head + before +
             ".visible .entry k(.param .u64 array, .param .u32 n) {\n.reg .b32 %r<100>;\n.reg .b64 %d<100>;\n"
             ".reg .pred %p<10>;\nld.param.u64 %d0, [array];\nld.param.u32 %r0, [n];\nmov.u32 %r1, %ctaid.x;\n"
             "mov.u32 %r2, %tid.x;\n" +
             body + "ret;\n}\n"});
  result.found = analysis::analyse(*result.parsed, *result.parsed->find_kernel("k"));
  return result;
}

TEST(HostileKernels, AJumpIntoALoopIsTooIrregular) {
  const auto a = analysed(
      "setp.eq.u32 %p0, %r1, 0;\n@%p0 bra MIDDLE;\nLOOP:\nadd.s32 %r2, %r2, 1;\nMIDDLE:\nmul.wide.u32 %d1, %r2, 4;\n"
      "add.s64 %d1, %d0, %d1;\nst.global.u32 [%d1], %r2;\nsetp.lt.u32 %p1, %r2, %r0;\n@%p1 bra LOOP;\n");
  EXPECT_FALSE(a.found.walk->is_complete());
  EXPECT_FALSE(a.found.verdict.may_be_spread());
  ASSERT_EQ(a.found.accesses.size(), 1U);
  EXPECT_EQ(a.found.accesses[0].how, analysis::address_class::data_dependent);
}

TEST(HostileKernels, MoreLoopsThanCanBeCounted) {
  std::string body;
  for (unsigned n = 0; n < 70; ++n)
    body +=
        fmt::format("mov.u32 %r3, 0;\nL{0}:\nadd.s32 %r3, %r3, 1;\nsetp.lt.u32 %p0, %r3, %r0;\n@%p0 bra L{0};\n", n);
  const auto a = analysed(body + "st.global.u32 [%d0], %r3;\n");
  EXPECT_FALSE(a.found.walk->is_complete());
  EXPECT_EQ(a.found.accesses[0].how, analysis::address_class::data_dependent);
}

TEST(HostileKernels, DeepChains) {
  std::string choices = "setp.lt.u32 %p0, %r1, 5;\n", predicates = choices, products;
  for (unsigned n = 0; n < 20000; ++n) {
    choices += fmt::format("add.s32 %r3, %r2, {};\nselp.b32 %r2, %r2, %r3, %p0;\n", n + 1);
    predicates += "and.pred %p0, %p0, %p0;\nnot.pred %p0, %p0;\n";
    products += fmt::format("mad.lo.s32 %r2, %r2, %r{}, %r0;\n", n % 2 + 1);
  }
  const std::string access = "mul.wide.u32 %d1, %r2, 4;\nadd.s64 %d1, %d0, %d1;\n@%p0 st.global.u32 [%d1], %r2;\n";
  for (const std::string& chain : {choices, predicates, products}) {
    const auto a = analysed(chain + access);
    ASSERT_EQ(a.found.accesses.size(), 1U);
    EXPECT_LE(a.found.accesses[0].forms.size(), 8U);
    const analysis::words words(*a.parsed, a.found);
    for (const analysis::address_form& f : a.found.accesses[0].forms) EXPECT_LT(words.of(f.whole).size(), 100000U);
  }
}

// Each product is made of sums of all earlier ones, so the words for it would be endless.
TEST(HostileKernels, ExpressionsInsideExpressions) {
  std::string body = "mov.u32 %r3, %ntid.x;\n";
  for (unsigned n = 0; n < 300; ++n)
    body +=
        "mul.lo.s32 %r2, %r0, %r1;\nadd.s32 %r0, %r2, %r3;\nmul.lo.s32 %r3, %r1, %r0;\nadd.s32 %r1, %r3, %r2;\nadd.s32 "
        "%r3, %r3, %r0;\n";
  const auto a = analysed(body + "mul.wide.u32 %d1, %r0, 4;\nadd.s64 %d1, %d0, %d1;\nst.global.u32 [%d1], %r0;\n");
  ASSERT_EQ(a.found.accesses.size(), 1U);
  const analysis::words words(*a.parsed, a.found);
  for (const analysis::address_form& f : a.found.accesses[0].forms) EXPECT_LT(words.of(f.whole).size(), 1000000U);
}

TEST(HostileKernels, RecursiveFunctionsAndEmptyOnes) {
  const std::string recursive =
      ".func f(.param .u64 p) {\n.reg .b64 %d<2>;\nld.param.u64 %d0, [p];\nst.global.u64 [%d0], %d0;\n{\n.param .b64 "
      "a;\n"
      "st.param.b64 [a], %d0;\ncall f, (a);\n}\nret;\n}\n";
  const auto a = analysed("{\n.param .b64 a;\nst.param.b64 [a], %d0;\ncall f, (a);\n}\n", recursive);
  EXPECT_TRUE(a.found.verdict.may_be_spread());
  ASSERT_EQ(a.found.accesses.size(), 1U);
  EXPECT_EQ(a.found.accesses[0].inside->name, "f");
  EXPECT_EQ(a.found.accesses[0].how, analysis::address_class::data_dependent);
  const auto p = parse({std::string(head) + ".visible .entry nothing() {\n}\n"});
  EXPECT_TRUE(analysis::analyse(*p, *p->find_kernel("nothing")).verdict.may_be_spread());
}

// Threads leave the loop by ending.
TEST(HostileKernels, AWaitThatEndsByRetIsAWait) {
  const auto waiting =
      analysed("LOOP:\nld.volatile.global.u32 %r3, [%d0];\nsetp.ne.u32 %p0, %r3, 0;\n@%p0 ret;\nbra LOOP;\n");
  EXPECT_FALSE(waiting.found.verdict.may_be_spread());
  const auto counting = analysed("LOOP:\nadd.s32 %r2, %r2, 1;\nsetp.ge.u32 %p0, %r2, %r0;\n@%p0 ret;\nbra LOOP;\n");
  EXPECT_TRUE(counting.found.verdict.may_be_spread());
}

// A counter behind its loop depends on what ended the loop.
TEST(HostileKernels, ACounterThatEndsByTheBlockIndexIsNotLocal) {
  const auto a = analysed(
      "mov.u32 %r3, 0;\nLOOP:\nadd.s32 %r3, %r3, 1;\nsetp.lt.u32 %p0, %r3, %r1;\n@%p0 bra LOOP;\nmul.wide.u32 %d1, "
      "%r3, 4;\n"
      "add.s64 %d1, %d0, %d1;\nst.global.u32 [%d1], %r2;\n");
  ASSERT_EQ(a.found.accesses.size(), 1U);
  EXPECT_EQ(a.found.accesses[0].how, analysis::address_class::irregular);
  const auto b = analysed(
      "mov.u32 %r3, 0;\nLOOP:\nadd.s32 %r3, %r3, 1;\nld.global.u32 %r4, [%d0];\nsetp.lt.u32 %p0, %r3, %r4;\n@%p0 bra "
      "LOOP;\n"
      "mul.wide.u32 %d1, %r3, 4;\nadd.s64 %d1, %d0, %d1;\nst.global.u32 [%d1], %r2;\n");
  EXPECT_EQ(b.found.accesses[1].how, analysis::address_class::data_dependent);
}

TEST(HostileKernels, TwoPointersInOneAddressHaveNoBase) {
  const auto a = analysed("add.s64 %d1, %d0, %d0;\nst.global.u32 [%d1], %r2;\n");
  EXPECT_FALSE(a.found.accesses[0].forms[0].base.has_value());
  EXPECT_EQ(a.found.accesses[0].how, analysis::address_class::data_dependent);
}

}  // namespace
}  // namespace hpe::ptx::test
