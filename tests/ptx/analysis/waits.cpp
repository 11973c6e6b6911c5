// Tests which loops the analysis classifies as waits for another block of the grid, and which it does not.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "runtime/ptx/analysis/analysis.h"
#include "runtime/ptx/text/parser.h"

namespace hpe::ptx::test {
namespace {

// A kernel with three arrays. %r1: thread index; %r2: block index; %rd1: flag; %rd2: x; %rd3: y; %rd4: the address of
// the block's own element of flag; %p1: whether the thread is not the first of its block.
std::string kernel(const std::string& body, const std::string& before = "") {
  return R"(.version 8.6
.target sm_90
.address_size 64
.global .align 4 .u32 ready;
)" + before +
         R"(
.visible .entry k(.param .u64 flag, .param .u64 x, .param .u64 y, .param .u32 n) {
  .reg .pred %p<8>;
  .reg .b32 %r<16>;
  .reg .b64 %rd<16>;
  .shared .align 4 .b32 copy[2];
  .shared .align 4 .b32 other[64];
  .local .align 8 .b8 depot[16];
  ld.param.u64 %rd1, [flag];
  ld.param.u64 %rd2, [x];
  ld.param.u64 %rd3, [y];
  cvta.to.global.u64 %rd1, %rd1;
  cvta.to.global.u64 %rd2, %rd2;
  cvta.to.global.u64 %rd3, %rd3;
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mul.wide.u32 %rd4, %r2, 4;
  add.u64 %rd4, %rd1, %rd4;
  setp.ne.u32 %p1, %r1, 0;
)" + body +
         "\n  ret;\n}\n";
}

bool waits(const std::string& text) {
  const auto p = parse({text});
  const analysis::kernel_analysis k = analysis::analyse(*p, *p->find_kernel("k"));
  EXPECT_TRUE(k.walk->is_complete());
  for (const std::string& obstacle : k.verdict.obstacles)
    EXPECT_NE(obstacle.find("wait for each other"), std::string::npos) << obstacle;
  return !k.verdict.may_be_spread();
}

// One thread of the block runs the loop, before or between barriers.
TEST(BlockWaits, AreFoundForEachKindOfRead) {
  for (const char* const read : {"ld.volatile.global.u32 %r3, [%rd4+4];", "ld.volatile.u32 %r3, [%rd4+4];",
                                 "ld.relaxed.gpu.global.u32 %r3, [%rd4+4];", "ld.acquire.gpu.global.u32 %r3, [%rd4+4];",
                                 "ld.acquire.sys.u32 %r3, [%rd4+4];", "ld.global.cv.u32 %r3, [%rd4+4];",
                                 "atom.global.or.b32 %r3, [%rd4+4], 0;", "atom.global.add.u32 %r3, [%rd4+4], 0;",
                                 "atom.global.cas.b32 %r3, [%rd4+4], 1, 1;", "atom.global.exch.b32 %r3, [%rd4+4], 0;",
                                 "membar.gl; ld.global.u32 %r3, [%rd4+4];", "ld.volatile.global.u32 %r3, [ready];"})
    EXPECT_TRUE(
        waits(kernel(fmt::format("@%p1 bra join;\nagain:\n{}\nsetp.eq.u32 %p2, %r3, 0;\n@%p2 bra again;\n"
                                 "join:\nbar.sync 0;\nst.global.u32 [%rd4], %r1;",
                                 read))))
        << read;
}

// One thread reads the flag. The other threads read its value from memory of the block after a barrier.
TEST(BlockWaits, AreFoundThroughMemoryOfTheBlock) {
  const char* const loop =
      "again:\nbar.sync 0;\n@%p1 bra join;\nld.volatile.global.u32 %r3, [%rd4+4];\n{}\njoin:\n"
      "bar.sync 0;\n{}\nsetp.eq.u32 %p2, %r4, 0;\n@%p2 bra again;\nst.global.u32 [%rd4], %r1;";
  for (const auto& [store, load] : {
           std::pair{"st.shared.u32 [copy], %r3;", "ld.shared.u32 %r4, [copy];"},
           {"st.volatile.shared.u32 [copy], %r3;", "ld.volatile.shared.u32 %r4, [copy];"},
           {"setp.eq.u32 %p3, %r3, 0;\n@%p3 bra join;\nst.shared.u32 [copy], 1;", "ld.shared.u32 %r4, [copy];"},
           {"setp.ne.u32 %p3, %r3, 0;\n@%p3 st.shared.u32 [copy], 1;", "ld.shared.u32 %r4, [copy];"},
           {"red.shared.or.b32 [copy], %r3;", "ld.shared.u32 %r4, [copy];"},
           {"st.shared.u32 [copy], %r3;", "atom.shared.or.b32 %r4, [copy], 0;"},
           {"st.shared.u32 [copy], %r3;", "mov.u64 %rd5, copy;\ncvta.shared.u64 %rd5, %rd5;\nld.u32 %r4, [%rd5];"},
           {"st.shared.u32 [copy], %r3;\nld.shared.u32 %r5, [copy];\nst.shared.u32 [other+8], %r5;",
            "ld.shared.u32 %r4, [other+8];"},
           {"mul.wide.u32 %rd5, %r2, 4;\nadd.u64 %rd5, %rd5, %rd2;\nst.global.u32 [%rd5], %r3;",
            "mul.wide.u32 %rd6, %r2, 4;\nadd.u64 %rd6, %rd6, %rd2;\nld.global.u32 %r4, [%rd6];"},
       })
    EXPECT_TRUE(waits(kernel(fmt::format(fmt::runtime(loop), store, load)))) << store << " " << load;
  // All threads of a debug build keep their variables in local memory.
  EXPECT_TRUE(
      waits(kernel("again:\nld.volatile.global.u32 %r3, [%rd4+4];\nst.local.u32 [depot+4], %r3;\n"
                   "ld.local.u32 %r4, [depot+4];\nsetp.eq.u32 %p2, %r4, 0;\n@%p2 bra again;")));
  // A copy to shared memory does not go through registers.
  EXPECT_TRUE(
      waits(kernel("st.global.u32 [%rd4], %r1;\nagain:\nmov.u32 %r5, copy;\n"
                   "cp.async.ca.shared.global [%r5], [%rd4+4], 4;\ncp.async.wait_all;\nbar.sync 0;\n"
                   "ld.shared.u32 %r4, [copy];\nsetp.eq.u32 %p2, %r4, 0;\n@%p2 bra again;")));
}

TEST(BlockWaits, AreFoundThroughMeetings) {
  const char* const loop =
      "again:\nmov.u32 %r3, 0;\n@!%p1 ld.volatile.global.u32 %r3, [%rd4+4];\nsetp.ne.u32 %p2, %r3, 0;\n{}\n"
      "@!%p3 bra again;\nst.global.u32 [%rd4], %r1;";
  for (const char* const meeting :
       {"bar.red.or.pred %p3, 0, %p2;", "bar.red.popc.u32 %r4, 0, %p2;\nsetp.ne.u32 %p3, %r4, 0;",
        "vote.sync.any.pred %p3, %p2, -1;", "vote.sync.ballot.b32 %r4, %p2, -1;\nsetp.ne.u32 %p3, %r4, 0;",
        "shfl.sync.idx.b32 %r4, %r3, 0, 31, -1;\nsetp.ne.u32 %p3, %r4, 0;",
        "redux.sync.or.b32 %r4, %r3, -1;\nsetp.ne.u32 %p3, %r4, 0;"})
    EXPECT_TRUE(waits(kernel(fmt::format(fmt::runtime(loop), meeting)))) << meeting;
}

TEST(BlockWaits, AreFoundThroughRegistersThatAnIterationLeavesToTheNext) {
  // %p2 and %r3 have no value before the first iteration.
  EXPECT_TRUE(
      waits(kernel("again:\n@%p2 bra done;\nld.volatile.global.u32 %r3, [%rd4+4];\nsetp.ne.u32 %p2, %r3, 0;\n"
                   "bra again;\ndone:\nst.global.u32 [%rd4], %r1;")));
  // The trip count of an inner loop decides when the outer loop ends.
  EXPECT_TRUE(
      waits(kernel("again:\nld.volatile.global.u32 %r3, [%rd4+4];\nmov.u32 %r4, 0;\ninner:\nadd.u32 %r4, %r4, 1;\n"
                   "setp.lt.u32 %p2, %r4, %r3;\n@%p2 bra inner;\nsetp.lt.u32 %p3, %r4, 2;\n@%p3 bra again;")));
}

// A value that may not fit into 32 bits needs an assumption, and a kernel may have 64 assumptions.
TEST(BlockWaits, AreFoundInLongKernels) {
  std::string body = "ld.param.u32 %r9, [n];\n";
  for (unsigned n = 0; n < 80; ++n)
    body += fmt::format(
        "mad.lo.u32 %r5, %r1, %r9, {};\ncvt.u64.u32 %rd5, %r5;\nadd.u64 %rd6, %rd2, %rd5;\n"
        "st.global.u8 [%rd6], %r1;\n",
        n);
  EXPECT_FALSE(waits(kernel(body)));
  body +=
      "again:\nld.volatile.global.u32 %r3, [%rd4+4];\nadd.u32 %r3, %r3, %r9;\ncvt.u64.u32 %rd7, %r3;\n"
      "setp.eq.u64 %p2, %rd7, 0;\n@%p2 bra again;";
  EXPECT_TRUE(waits(kernel(body)));
}

// The load is plain, without a memory order, and has the same address in each iteration. A barrier makes the thread
// read the memory again, and another block writes to the address.
TEST(BlockWaits, AreFoundForPlainLoadsOfWhatTheLaunchWrites) {
  const auto loop = [](const char* address, const char* wait) {
    return fmt::format("again:\n{1}\nld.global.u32 %r3, [{0}];\nsetp.eq.u32 %p2, %r3, 0;\n@%p2 bra again;\n", address,
                       wait);
  };
  for (const char* const wait : {"bar.sync 0;", "bar.warp.sync -1;", "membar.cta;"})
    EXPECT_TRUE(waits(kernel(loop("%rd4+4", wait) + "st.global.u32 [%rd4], %r1;"))) << wait;
  EXPECT_TRUE(waits(kernel(loop("ready", "bar.sync 0;") + "st.global.u32 [ready], 1;")));
  EXPECT_TRUE(waits(kernel(loop("%rd1", "bar.sync 0;") + "red.global.add.u32 [%rd1], 1;")));
  EXPECT_TRUE(
      waits(kernel("again:\nld.global.cg.u32 %r3, [%rd4+4];\nsetp.eq.u32 %p2, %r3, 0;\n@%p2 bra again;\n"
                   "st.global.u32 [%rd4], %r1;")));
  // Each block has n elements, and reads an element of the previous block.
  const std::string element =
      "ld.param.u32 %r9, [n];\nmul.lo.u32 %r5, %r2, %r9;\nmul.wide.u32 %rd5, %r5, 4;\n"
      "add.u64 %rd5, %rd1, %rd5;\nmul.wide.u32 %rd7, %r9, 4;\nsub.u64 %rd6, %rd5, %rd7;\n";
  EXPECT_TRUE(waits(kernel(element + loop("%rd6", "bar.sync 0;") + "st.global.u32 [%rd5], %r1;")));
  EXPECT_FALSE(waits(kernel(element + "st.global.u32 [%rd5+4], %r1;\n" + loop("%rd5+4", "bar.sync 0;"))));
  // No block writes to the address, or only the block that reads it.
  EXPECT_FALSE(waits(kernel(loop("%rd4+4", "bar.sync 0;") + "st.global.u32 [%rd2], %r1;")));
  EXPECT_FALSE(waits(kernel("st.global.u32 [%rd4], %r1;\n" + loop("%rd4", "bar.sync 0;"))));
}

TEST(BlockWaits, AreFoundInCalledFunctions) {
  const char* const poll = R"(
.func (.param .b32 result) poll(.param .b64 flag) {
  .reg .b32 %r<2>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [flag];
  ld.volatile.u32 %r1, [%rd1];
  st.param.b32 [result], %r1;
  ret;
}
.func store(.param .b64 flag, .param .b64 to) {
  .reg .b32 %r<2>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [flag];
  ld.param.u64 %rd2, [to];
  ld.volatile.u32 %r1, [%rd1];
  st.u32 [%rd2], %r1;
  ret;
})";
  EXPECT_TRUE(
      waits(kernel("again:\n{\n.param .b64 a;\n.param .b32 b;\nst.param.b64 [a], %rd4;\ncall.uni (b), poll, (a);\n"
                   "ld.param.b32 %r3, [b];\n}\nsetp.eq.u32 %p2, %r3, 0;\n@%p2 bra again;",
                   poll)));
  EXPECT_TRUE(
      waits(kernel("mov.u64 %rd5, copy;\ncvta.shared.u64 %rd5, %rd5;\nagain:\n@%p1 bra join;\n{\n.param .b64 a;\n"
                   ".param .b64 b;\nst.param.b64 [a], %rd4;\nst.param.b64 [b], %rd5;\ncall.uni store, (a, b);\n"
                   "}\njoin:\nbar.sync 0;\nld.shared.u32 %r3, [copy];\nbar.sync 0;\nsetp.eq.u32 %p2, %r3, 0;\n"
                   "@%p2 bra again;",
                   poll)));
}

// In debug builds, each use of a CUDA function is a call.
TEST(BlockWaits, AreFoundInDebugBuilds) {
  const char* const functions = R"(
.func (.param .b32 result) add(.param .b64 to, .param .b32 n) {
  .reg .b32 %r<3>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [to];
  ld.param.u32 %r1, [n];
  atom.add.u32 %r2, [%rd1], %r1;
  st.param.b32 [result], %r2;
  ret;
}
.func (.param .b32 result) same(.param .b32 n) {
  .reg .b32 %r<2>;
  ld.param.u32 %r1, [n];
  st.param.b32 [result], %r1;
  ret;
}
.func fence() {
  membar.gl;
  ret;
})";
  const auto adding = [](unsigned n) {
    return fmt::format(
        "again:\n{{\n.param .b64 a;\n.param .b32 b;\n.param .b32 c;\nst.param.b64 [a], %rd1;\n"
        "st.param.b32 [b], {};\ncall.uni (c), add, (a, b);\nld.param.b32 %r3, [c];\n}}\n"
        "setp.lt.u32 %p2, %r3, 100;\n@%p2 bra again;",
        n);
  };
  EXPECT_TRUE(waits(kernel(adding(0), functions)));
  EXPECT_FALSE(waits(kernel(adding(1), functions)));
  EXPECT_TRUE(
      waits(kernel("again:\nld.volatile.u32 %r3, [%rd4+4];\n{\n.param .b32 a;\n.param .b32 b;\n"
                   "st.param.b32 [a], %r3;\ncall.uni (b), same, (a);\nld.param.b32 %r4, [b];\n}\n"
                   "setp.eq.u32 %p2, %r4, 0;\n@%p2 bra again;",
                   functions)));
  EXPECT_TRUE(waits(
      kernel("again:\nld.u32 %r3, [%rd4+4];\ncall.uni fence;\nsetp.eq.u32 %p2, %r3, 0;\n@%p2 bra again;", functions)));
  // A function sets the flag.
  EXPECT_TRUE(
      waits(kernel("{\n.param .b64 a;\n.param .b32 b;\n.param .b32 c;\nst.param.b64 [a], %rd1;\n"
                   "st.param.b32 [b], 1;\ncall.uni (c), add, (a, b);\n}\nagain:\nbar.sync 0;\n"
                   "ld.u32 %r3, [%rd1];\nsetp.lt.u32 %p2, %r3, 8;\n@%p2 bra again;",
                   functions)));
}

// In these loops, a thread reads the trip count from an array, and writes results of atomic operations to other arrays.
// %r5: the address of an element that changes.
TEST(BlockWaits, AreNotLoopsThatWriteOtherArrays) {
  const auto loop = [](const std::string& body, const char* bound = "ld.global.u32 %r4, [%rd1+4];") {
    return fmt::format(
        "mov.u32 %r6, 0;\nagain:\n{}\nmul.wide.u32 %rd5, %r6, 4;\nadd.u64 %rd6, %rd2, %rd5;\n{}\nskip:\n"
        "add.u32 %r6, %r6, 1;\nsetp.lt.u32 %p2, %r6, %r4;\n@%p2 bra again;\n",
        bound, body);
  };
  const std::string search =
      "atom.global.cas.b32 %r3, [%rd6], -1, 5;\nsetp.ne.u32 %p3, %r3, -1;\n@%p3 bra skip;\n"
      "atom.global.add.u32 %r5, [%rd3], 1;\nmul.wide.u32 %rd7, %r5, 4;\nadd.u64 %rd7, %rd3, %rd7;\n"
      "st.global.u32 [%rd7+4], %r6;";
  EXPECT_FALSE(waits(kernel(loop(search))));
  EXPECT_FALSE(
      waits(kernel(loop("atom.global.min.u32 %r3, [%rd6], 5;\nsetp.le.u32 %p3, %r3, 5;\n@%p3 bra skip;\n"
                        "st.global.u32 [%rd3], 1;"))));
  EXPECT_FALSE(waits(kernel(loop("atom.global.exch.b32 %r3, [%rd6], 0;\nst.global.u32 [%rd3], %r3;"))));
  EXPECT_FALSE(waits(kernel(loop("ld.volatile.global.u32 %r3, [%rd6];\nst.global.u32 [%rd3], %r3;"))));
  EXPECT_FALSE(waits(kernel(loop("ld.relaxed.gpu.global.u32 %r3, [%rd6];\nst.global.u32 [%rd3], %r3;"))));
  // The arrays are members of a struct in memory, so each of them may contain the trip count. But each iteration uses
  // another element.
  const std::string member = "ld.global.u64 %rd8, [%rd1];\nld.global.u32 %r4, [%rd8+4];";
  EXPECT_FALSE(waits(kernel(loop(search, member.c_str()))));
  // Each iteration tries to get the same lock.
  EXPECT_TRUE(
      waits(kernel(loop("atom.global.cas.b32 %r3, [%rd3], 0, 1;\nsetp.ne.u32 %p3, %r3, 0;\n@%p3 bra skip;\n"
                        "st.global.u32 [%rd2], 1;",
                        member.c_str()))));
  EXPECT_TRUE(
      waits(kernel("again:\nbar.sync 0;\n@%p1 bra join;\natom.global.cas.b32 %r3, [%rd1], 0, 1;\n"
                   "setp.ne.u32 %p3, %r3, 0;\n@%p3 bra join;\nst.shared.u32 [copy], 1;\njoin:\nbar.sync 0;\n"
                   "ld.shared.u32 %r4, [copy];\nsetp.eq.u32 %p2, %r4, 0;\n@%p2 bra again;")));
  // The address of the lock is in local memory.
  EXPECT_TRUE(
      waits(kernel("st.local.u64 [depot+8], %rd1;\nagain:\nld.local.u64 %rd5, [depot+8];\n"
                   "atom.cas.b32 %r3, [%rd5], 0, 1;\nst.local.u32 [depot], %r3;\nld.local.u32 %r4, [depot];\n"
                   "setp.ne.u32 %p2, %r4, 0;\n@%p2 bra again;")));
}

// A member of a struct decides when the loop ends; threads increment another member.
TEST(BlockWaits, AreNotLoopsThatReadAnotherMember) {
  const auto loop = [](const char* before, const char* behind) {
    return fmt::format(
        "mov.u32 %r4, 0;\nagain:\nbar.sync 0;\n{}\nld.global.u32 %r3, [%rd1];\nadd.u32 %r4, %r4, 1;\n"
        "setp.lt.u32 %p2, %r4, %r3;\n@%p2 bra again;\n{}",
        before, behind);
  };
  EXPECT_FALSE(waits(kernel(loop("", "red.global.add.u32 [%rd1+4], 1;"))));
  EXPECT_TRUE(waits(kernel(loop("", "red.global.add.u32 [%rd1], 1;"))));
  EXPECT_TRUE(waits(kernel(loop("", "st.global.u64 [%rd1], 1;"))));
  EXPECT_TRUE(waits(kernel(loop("", "st.global.v2.u32 [%rd1+-4], {%r1, %r1};"))));
  // The loop writes another member than it reads, but code after the loop writes the member that it reads.
  EXPECT_TRUE(waits(kernel(loop("st.global.u32 [%rd1+4], 1;", "red.global.add.u32 [%rd1], 1;"))));
  // A function gets a pointer to a member.
  const char* const add = R"(
.func add(.param .b64 to) {
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [to];
  red.add.u32 [%rd1], 1;
  ret;
})";
  const auto call = [](unsigned offset) {
    return fmt::format("add.u64 %rd8, %rd1, {};\n{{\n.param .b64 a;\nst.param.b64 [a], %rd8;\ncall.uni add, (a);\n}}",
                       offset);
  };
  EXPECT_FALSE(waits(kernel(loop("", call(4).c_str()), add)));
  EXPECT_TRUE(waits(kernel(loop("", call(0).c_str()), add)));
  // Each thread has its own element, but another thread may increment the element that this thread reads.
  const std::string element = "mul.wide.u32 %rd5, %r1, 4;\nadd.u64 %rd1, %rd1, %rd5;\n";
  EXPECT_TRUE(waits(kernel(element + loop("", "red.global.add.u32 [%rd1+4], 1;"))));
}

// A called function polls, but the trip count is in memory to which the function gets no pointer.
TEST(BlockWaits, AreNotLoopsWithACallThatStoresElsewhere) {
  const char* const functions = R"(
.func (.param .b32 result) take(.param .b64 from, .param .b64 to) {
  .reg .b32 %r<2>;
  .reg .b64 %rd<3>;
  .local .align 4 .b8 depot[4];
  ld.param.u64 %rd1, [from];
  ld.param.u64 %rd2, [to];
  ld.volatile.u32 %r1, [%rd1];
  st.local.u32 [depot], %r1;
  st.u32 [%rd2], %r1;
  st.param.b32 [result], %r1;
  ret;
})";
  const auto loop = [](const char* to, const char* bound) {
    return fmt::format(
        "mov.u64 %rd5, copy;\ncvta.shared.u64 %rd5, %rd5;\nmov.u64 %rd6, depot;\ncvta.local.u64 %rd6, %rd6;\n"
        "mov.u64 %rd7, other;\ncvta.shared.u64 %rd7, %rd7;\nmov.u32 %r6, 0;\nagain:\n{{\n.param .b64 a;\n"
        ".param .b64 b;\n.param .b32 c;\nst.param.b64 [a], %rd4;\nst.param.b64 [b], {};\n"
        "call.uni (c), take, (a, b);\nld.param.b32 %r3, [c];\n}}\nadd.u32 %r6, %r6, 1;\n{}\n"
        "setp.lt.u32 %p2, %r6, %r4;\n@%p2 bra again;",
        to, bound);
  };
  for (const char* const bound : {"ld.shared.u32 %r4, [copy];", "ld.u32 %r4, [%rd5];"}) {
    EXPECT_FALSE(waits(kernel(loop("%rd2", bound), functions))) << bound;
    EXPECT_FALSE(waits(kernel(loop("%rd7", bound), functions))) << bound;
    EXPECT_TRUE(waits(kernel(loop("%rd5", bound), functions))) << bound;
  }
  for (const char* const bound : {"ld.local.u32 %r4, [depot+4];", "ld.u32 %r4, [%rd6+4];"}) {
    EXPECT_FALSE(waits(kernel(loop("%rd2", bound), functions))) << bound;
    EXPECT_TRUE(waits(kernel(loop("%rd6", bound), functions))) << bound;
  }
  EXPECT_FALSE(waits(kernel("add.u64 %rd8, %rd6, 8;\n" + loop("%rd8", "ld.local.u32 %r4, [depot];"), functions)));
}

TEST(BlockWaits, AreNotOrdinaryLoops) {
  const std::vector<std::pair<const char*, std::string>> kernels{
      {"a trip count that is read before the loop, even if volatile",
       "ld.volatile.global.u32 %r3, [%rd1];\nmov.u32 %r4, 0;\nagain:\nbar.sync 0;\nst.global.u32 [%rd4], %r4;\n"
       "add.u32 %r4, %r4, 1;\nsetp.lt.u32 %p2, %r4, %r3;\n@%p2 bra again;"},
      {"a trip count that each iteration reads, in memory that only the host writes",
       "mov.u32 %r4, 0;\nagain:\nbar.sync 0;\nst.global.u32 [%rd4], %r4;\nld.global.u32 %r3, [%rd2];\n"
       "add.u32 %r4, %r4, 1;\nsetp.lt.u32 %p2, %r4, %r3;\n@%p2 bra again;"},
      {"the row of a sparse matrix",
       "mul.wide.u32 %rd5, %r1, 4;\nadd.u64 %rd5, %rd1, %rd5;\nld.global.u32 %r3, [%rd5];\nagain:\nbar.sync 0;\n"
       "ld.global.u32 %r4, [%rd5+4];\nadd.u32 %r3, %r3, 1;\nsetp.lt.u32 %p2, %r3, %r4;\n@%p2 bra again;\n"
       "st.global.u32 [%rd3], %r3;"},
      {"a list",
       "mov.u32 %r3, %r1;\nagain:\nbar.warp.sync -1;\nmul.wide.u32 %rd5, %r3, 4;\nadd.u64 %rd5, %rd1, %rd5;\n"
       "ld.global.u32 %r3, [%rd5];\nsetp.ne.u32 %p2, %r3, 0;\n@%p2 bra again;\nst.global.u32 [%rd2], %r3;"},
      {"convergence of values that the block writes, signalled in shared memory",
       "again:\nbar.sync 0;\n@!%p1 st.shared.u32 [copy], 0;\nbar.sync 0;\nld.global.u32 %r3, [%rd4];\n"
       "ld.global.u32 %r4, [%rd4+4];\nadd.u32 %r5, %r3, %r4;\nshr.u32 %r5, %r5, 1;\nst.global.u32 [%rd4], %r5;\n"
       "setp.eq.u32 %p3, %r5, %r3;\n@!%p3 st.shared.u32 [copy], 1;\nbar.sync 0;\nld.shared.u32 %r6, [copy];\n"
       "setp.ne.u32 %p2, %r6, 0;\n@%p2 bra again;"},
      {"tiles from a counter, distributed through shared memory",
       "again:\nbar.sync 0;\n@%p1 bra join;\natom.global.add.u32 %r3, [%rd1], 1;\nst.shared.u32 [copy], %r3;\njoin:\n"
       "bar.sync 0;\nld.shared.u32 %r4, [copy];\nsetp.lt.u32 %p2, %r4, 100;\n@%p2 bra again;"},
      {"a lock-free update",
       "ld.global.u32 %r3, [%rd1];\nagain:\nadd.u32 %r4, %r3, %r1;\natom.global.cas.b32 %r5, [%rd1], %r3, %r4;\n"
       "setp.ne.u32 %p2, %r5, %r3;\nmov.u32 %r3, %r5;\n@%p2 bra again;"},
      {"a wait for another warp of the block",
       "again:\nld.volatile.shared.u32 %r3, [copy];\nsetp.eq.u32 %p2, %r3, 0;\n@%p2 bra again;"},
      {"volatile values that do not decide when the loop ends",
       "mov.u32 %r4, 0;\n@!%p1 st.shared.u32 [copy], 8;\nagain:\nbar.sync 0;\nld.volatile.global.u32 %r3, [%rd1];\n"
       "st.shared.u32 [other], %r3;\nst.shared.u32 [copy+4], %r3;\nld.shared.u32 %r5, [copy];\nadd.u32 %r4, %r4, 1;\n"
       "setp.lt.u32 %p2, %r4, %r5;\n@%p2 bra again;"},
  };
  for (const auto& [what, body] : kernels) EXPECT_FALSE(waits(kernel(body))) << what;
}

}  // namespace
}  // namespace hpe::ptx::test
