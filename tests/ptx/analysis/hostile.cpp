// Kernels that no compiler would write. The analysis must end, and must not make wrong claims about accesses.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <limits>

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
             ".reg .pred %p<10>;\n.reg .b16 %h<10>;\n.reg .f32 %f<10>;\nld.param.u64 %d0, [array];\nld.param.u32 %r0, "
             "[n];\nmov.u32 %r1, %ctaid.x;\n"
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

// In a debug build, all variables of a loop are in local memory. The analysis of four times as many loads and stores
// must take about four times as long.
TEST(HostileKernels, ManyAccessesOfFewVariables) {
  const auto ticks = [](unsigned count) {
    std::string body = "mov.u32 %r4, 0;\nLOOP:\n";
    for (unsigned n = 0; n < count; ++n)
      body += "ld.local.u32 %r3, [depot+4];\nadd.u32 %r4, %r4, %r3;\nst.local.u32 [depot], %r1;\n";
    body = ".local .align 8 .b8 depot[16];\n" + body + "setp.lt.u32 %p0, %r4, %r0;\n@%p0 bra LOOP;\n";
    std::clock_t best = std::numeric_limits<std::clock_t>::max();
    for (unsigned n = 0; n < 3; ++n) {
      const std::clock_t begin = std::clock();
      EXPECT_TRUE(analysed(body).found.verdict.may_be_spread());
      best = std::min(best, std::clock() - begin);
    }
    return best;
  };
  const std::clock_t few = ticks(2000), many = ticks(8000);
  EXPECT_LT(many, 9 * few);
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

// Each product contains sums of all earlier products, so the text for it would grow without limit.
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

// Threads leave the loop with ret.
TEST(HostileKernels, AWaitThatEndsByRetIsAWait) {
  const auto waiting =
      analysed("LOOP:\nld.volatile.global.u32 %r3, [%d0];\nsetp.ne.u32 %p0, %r3, 0;\n@%p0 ret;\nbra LOOP;\n");
  EXPECT_FALSE(waiting.found.verdict.may_be_spread());
  const auto counting = analysed("LOOP:\nadd.s32 %r2, %r2, 1;\nsetp.ge.u32 %p0, %r2, %r0;\n@%p0 ret;\nbra LOOP;\n");
  EXPECT_TRUE(counting.found.verdict.may_be_spread());
}

// After a loop, the value of the loop's counter depends on the condition that ended the loop.
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

// A loop that leaves the number of its iterations in %r<number>.
std::string loop_of(int number, const std::string& times, const std::string& body = "") {
  return fmt::format(
      "mov.u32 %r{0}, 0;\nLOOP{0}:\n{1}add.s32 %r{0}, %r{0}, 1;\nsetp.lt.u32 %p0, %r{0}, {2};\n"
      "@%p0 bra LOOP{0};\n",
      number, body, times);
}

constexpr const char* store_at_r20 = "mul.wide.u32 %d1, %r20, 4;\nadd.s64 %d1, %d0, %d1;\nst.global.u32 [%d1], %r2;\n";

analysis::address_class class_of_store(const std::string& body, const std::string& store = store_at_r20) {
  const auto a = analysed(fmt::format(fmt::runtime(body), fmt::arg("store", store)));
  EXPECT_TRUE(a.found.walk->is_complete());
  const auto& all = a.found.accesses;
  const auto found = std::find_if(all.begin(), all.end(),
                                  [](const analysis::access& one) { return one.what == analysis::access_kind::write; });
  EXPECT_NE(found, all.end());
  return found == all.end() ? analysis::address_class::local : found->how;
}

// A register is set after an inner loop and keeps its value until the next iteration of the outer loop. So its value
// depends on the inner loop's trip counts in earlier iterations of the outer loop.
TEST(HostileKernels, CarriedTripCountsDependOnWhatEndsTheLoop) {
  using enum analysis::address_class;
  const auto nest = [](const std::string& times) {
    return "mov.u32 %r20, 7;\n" + loop_of(10, "%r0", "{store}" + loop_of(11, times) + "mov.u32 %r20, %r11;\n");
  };
  EXPECT_EQ(class_of_store(nest("%r1")), irregular);
  EXPECT_EQ(class_of_store(nest("%r0")), local);
  EXPECT_EQ(class_of_store(nest("%r2")), local);
  // The same holds for the trip counts of loops that are nested more deeply, and for a register whose value is computed
  // from a trip count.
  EXPECT_EQ(class_of_store("mov.u32 %r20, 7;\n" +
                           loop_of(10, "%r0",
                                   "{store}" + loop_of(11, "%r0", loop_of(12, "%r1") + "shr.u32 %r13, %r12, 1;\n") +
                                       "add.s32 %r20, %r13, 1;\n")),
            irregular);
  // The analysis must not treat a number that depends on the thread as a factor that is the same for all blocks.
  const std::string times_block =
      "mul.lo.s32 %r21, %r20, %r1;\nmul.wide.u32 %d1, %r21, 4;\nadd.s64 %d1, %d0, %d1;\nst.global.u32 [%d1], %r2;\n";
  EXPECT_EQ(class_of_store(nest("%r2"), times_block), irregular);
}

// A value that is chosen by or converted from a trip count depends on the condition that ended the loop.
TEST(HostileKernels, ValuesMadeOfATripCountDependOnWhatEndsTheLoop) {
  using enum analysis::address_class;
  const auto chosen = [](const std::string& times) {
    return loop_of(11, times) +
           "setp.gt.u32 %p1, %r11, 3;\nmov.u16 %h0, 1;\n@%p1 bra BIG;\nmov.u16 %h0, 2;\nBIG:\ncvt.u32.u16 %r20, %h0;\n"
           "{store}";
  };
  EXPECT_EQ(class_of_store(chosen("%r1")), irregular);
  EXPECT_EQ(class_of_store(chosen("%r0")), local);
  const auto converted = [](const std::string& times) {
    return loop_of(11, times) + "cvt.rn.f32.u32 %f0, %r11;\ncvt.rzi.u32.f32 %r20, %f0;\n{store}";
  };
  EXPECT_EQ(class_of_store(converted("%r1")), irregular);
  EXPECT_EQ(class_of_store(converted("%r0")), local);
}

// A branch whose only effect is that threads reach or skip the exit of a loop also decides when the loop ends.
TEST(HostileKernels, BranchesBeforeAWayOutDecideHowOftenALoopRuns) {
  using enum analysis::address_class;
  const auto with_break = [](const std::string& guard, const std::string& skipped) {
    return "mov.u32 %r20, 0;\nLOOP:\nsetp.gt.u32 %p0, " + guard + ", 2;\n@%p0 bra SKIP;\n" + skipped +
           "SKIP:\nadd.s32 %r20, %r20, 1;\nsetp.lt.u32 %p0, %r20, 9;\n@%p0 bra LOOP;\nDONE:\n{store}";
  };
  const std::string leaves = "setp.gt.u32 %p1, %r20, 4;\n@%p1 bra DONE;\n";
  EXPECT_EQ(class_of_store(with_break("%r1", leaves)), irregular);
  EXPECT_EQ(class_of_store(with_break("%r0", leaves)), local);
  // The same is true if threads end at the exit.
  EXPECT_EQ(class_of_store(with_break("%r1", "setp.gt.u32 %p1, %r20, 4;\n@%p1 ret;\n")), irregular);
  // A branch whose two sides join before the exit does not decide when the loop ends.
  EXPECT_EQ(class_of_store(with_break("%r1", "red.global.add.u32 [%d0], 1;\n")), local);
  // A loop that waits is still a wait if such a branch decides about its exit.
  const std::string waits =
      "mov.u32 %r20, 0;\nLOOP:\nld.volatile.global.u32 %r3, [%d0];\nsetp.eq.u32 %p0, %r3, 0;\n@%p0 bra LATER;\n"
      "setp.gt.u32 %p1, %r20, %r0;\n@%p1 bra DONE;\nLATER:\nadd.s32 %r20, %r20, 1;\nbra LOOP;\nDONE:\n";
  EXPECT_FALSE(analysed(waits).found.verdict.may_be_spread());
}

// Two jumps back to a header bring different values, so the value depends on the condition that chooses between the
// jumps.
TEST(HostileKernels, BranchesToOtherJumpsBackDecideWhatIsCarried) {
  using enum analysis::address_class;
  const auto two_latches = [](const std::string& chooser) {
    return "mov.u32 %r20, 0;\nmov.u32 %r21, 0;\nLOOP:\n{store}add.s32 %r21, %r21, 1;\nsetp.gt.u32 %p1, %r21, 9;\n"
           "@%p1 bra DONE;\nsetp.gt.u32 %p0, " +
           chooser + ", 2;\nmov.u32 %r20, 5;\n@%p0 bra LOOP;\nmov.u32 %r20, 8;\nbra LOOP;\nDONE:\n";
  };
  EXPECT_EQ(class_of_store(two_latches("%r1")), irregular);
  EXPECT_EQ(class_of_store(two_latches("%r0")), local);
}

TEST(HostileKernels, TwoPointersInOneAddressHaveNoBase) {
  const auto a = analysed("add.s64 %d1, %d0, %d0;\nst.global.u32 [%d1], %r2;\n");
  EXPECT_FALSE(a.found.accesses[0].forms[0].base.has_value());
  EXPECT_EQ(a.found.accesses[0].how, analysis::address_class::data_dependent);
}

}  // namespace
}  // namespace hpe::ptx::test
