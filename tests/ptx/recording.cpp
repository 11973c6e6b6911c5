// Recorded accesses: which bytes a kernel reads, writes and changes atomically, and at which instruction.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/ptx/programs_fixture.h"

namespace hpe::ptx::test {
namespace {

constexpr std::size_t bytes = 4096;

class Recording : public ::testing::TestWithParam<engine_kind> {
 protected:
  void SetUp() override {
    if (GetParam() == engine_kind::compiler && !has_compiler) GTEST_SKIP() << "built without LLVM: no native code";
  }

  // Runs the body of a kernel in 64 threads. %rd1 is the address of `bytes` bytes, %r1 is the thread's number.
  void run(const std::string& body, recorded_reads reads = recorded_reads::all) {
    const std::string text = R"(.version 8.0
.target sm_75
.address_size 64
.visible .global .align 4 .u32 variable;
.visible .entry k(.param .u64 to) {
  .reg .pred %p<4>;
  .reg .b16 %h<4>;
  .reg .b32 %r<12>;
  .reg .b64 %rd<12>;
  .reg .f32 %f<8>;
  .shared .align 8 .b8 room[512];
  ld.param.u64 %rd1, [to];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
)" + body + "\n  ret;\n}\n";
    const auto program = parse({text});
    sites_ = find_access_sites(*program).size();
    memory_.assign(4 * bytes / sizeof(std::uint64_t), 0);
    auto* const begin = reinterpret_cast<std::uint8_t*>(memory_.data());
    const record_places places{reinterpret_cast<std::uint64_t>(begin), bytes, {bytes, 2 * bytes, 3 * bytes}};
    kernel_runner runner({text}, GetParam(), warp_order::independent, {}, &places, reads);
    runner.lend(begin, 4 * bytes);
    EXPECT_RUNS(runner.launch("k", {{1}, {64}}, begin));
    if (GetParam() == engine_kind::compiler) {
      EXPECT_TRUE(runner.is_compiled("k"));
    }
  }

  // The recorded bytes of a use, as "begin-end:site".
  [[nodiscard]] std::string recorded(recorded_use use) const {
    const auto* const at =
        reinterpret_cast<const std::uint8_t*>(memory_.data()) + (1 + static_cast<std::size_t>(use)) * bytes;
    std::string result;
    for (std::size_t n = 0; n < bytes;) {
      std::size_t end = n;
      while (end < bytes && at[end] == at[n]) ++end;
      if (at[n] != 0)
        result += std::string(result.empty() ? "" : " ") + std::to_string(n) + "-" + std::to_string(end) + ":" +
                  std::to_string(at[n]);
      n = end;
    }
    return result;
  }

  std::vector<std::uint64_t> memory_;
  std::size_t sites_ = 0;
};

TEST_P(Recording, OfContiguousReadsAndWrites) {
  run(R"(  ld.global.f32 %f1, [%rd3];
  st.global.f32 [%rd3+1024], %f1;)");
  EXPECT_EQ(recorded(recorded_use::read), "0-256:1");
  EXPECT_EQ(recorded(recorded_use::write), "1024-1280:2");
  EXPECT_EQ(sites_, 2U);
}

TEST_P(Recording, OfVectorsBytesAndStrides) {
  run(R"(  mul.wide.u32 %rd4, %r1, 16;
  add.s64 %rd5, %rd1, %rd4;
  ld.global.v2.f32 {%f1, %f2}, [%rd5+8];
  add.s64 %rd6, %rd1, %rd4;
  st.global.u8 [%rd6+2049], %h1;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra done;
  ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1+4000];
done:)");
  std::string read, written;
  for (int n = 0; n < 64; ++n) {
    read += std::to_string(16 * n + 8) + "-" + std::to_string(16 * n + 16) + ":1 ";
    written +=
        std::string(n == 0 ? "" : " ") + std::to_string(2049 + 16 * n) + "-" + std::to_string(2050 + 16 * n) + ":2";
  }
  EXPECT_EQ(recorded(recorded_use::read), read + "4000-4016:3");
  EXPECT_EQ(recorded(recorded_use::write), written);
}

TEST_P(Recording, OfGuardedAccesses) {
  run(R"(  setp.lt.u32 %p1, %r1, 5;
  @%p1 ld.global.u32 %r2, [%rd3];
  @!%p1 st.u32 [%rd3], %r1;)");
  EXPECT_EQ(recorded(recorded_use::read), "0-20:1");
  EXPECT_EQ(recorded(recorded_use::write), "20-256:2");
}

TEST_P(Recording, LeavesOutSharedAndLocalMemory) {
  run(R"(  mov.u64 %rd4, room;
  cvta.shared.u64 %rd5, %rd4;
  add.s64 %rd6, %rd5, %rd2;
  st.u32 [%rd6], %r1;
  add.s64 %rd7, %rd4, %rd2;
  st.shared.u32 [%rd7+256], %r1;
  ld.u32 %r2, [%rd6];
  st.u32 [%rd3], %r2;)");
  EXPECT_EQ(recorded(recorded_use::read), "");
  EXPECT_EQ(recorded(recorded_use::write), "0-256:3");
}

TEST_P(Recording, OfAtomicAndOrderedAccesses) {
  run(R"(  atom.global.add.u32 %r2, [%rd1], 1;
  red.global.add.u32 [%rd1+8], 1;
  ld.volatile.global.u32 %r3, [%rd1+16];
  st.release.gpu.global.u32 [%rd1+24], %r3;)");
  EXPECT_EQ(recorded(recorded_use::atomic), "0-4:1 8-12:2 16-20:3 24-28:4");
  EXPECT_EQ(recorded(recorded_use::read) + recorded(recorded_use::write), "");
}

// The address of a load may be in the register that the load changes.
TEST_P(Recording, OfLoadsThatReplaceTheirAddress) {
  run(R"(  st.global.u64 [%rd1+64], %rd1;
  mov.u64 %rd4, %rd1;
  ld.global.u64 %rd4, [%rd4+64];
  ld.global.u32 %r2, [%rd4+128];)");
  EXPECT_EQ(recorded(recorded_use::read), "64-72:2 128-132:3");
}

TEST_P(Recording, OfLoops) {
  run(R"(  mov.u32 %r2, 0;
again:
  ld.global.u32 %r3, [%rd3];
  st.global.u32 [%rd3+4], %r3;
  add.s64 %rd3, %rd3, 8;
  add.u32 %r2, %r2, 1;
  setp.lt.u32 %p1, %r2, 100;
  @%p1 bra again;)");
  EXPECT_EQ(recorded(recorded_use::read), "0-1048:1");
  EXPECT_EQ(recorded(recorded_use::write), "4-1052:2");
}

TEST_P(Recording, OfReadsBeforeWrites) {
  run(R"(  ld.global.u32 %r2, [%rd3];
  st.global.u32 [%rd3], %r2;
  ld.global.u32 %r3, [%rd3];
  st.global.u32 [%rd3+1024], %r2;
  ld.u32 %r4, [%rd3+1024];
  setp.lt.u32 %p1, %r1, 5;
  @%p1 st.global.u32 [%rd3+2048], %r2;
  @!%p1 ld.u32 %r5, [%rd3+2048];
  @%p1 ld.global.u32 %r6, [%rd3+2048];
  add.s64 %rd5, %rd1, %rd2;
  @%p1 st.global.u8 [%rd5+3072], %h1;
  ld.global.u8 %h2, [%rd5+3072];)",
      recorded_reads::first);
  std::string bytes_read;
  for (int n = 5; n < 64; ++n)
    bytes_read += std::string(" ") + std::to_string(3072 + 4 * n) + "-" + std::to_string(3073 + 4 * n) + ":10";
  EXPECT_EQ(recorded(recorded_use::read), "0-256:1 2068-2304:7" + bytes_read);
}

TEST_P(Recording, OfReadsBeforeWritesInLoops) {
  run(R"(  mov.u32 %r2, 0;
again:
  ld.global.u32 %r3, [%rd3];
  st.global.u32 [%rd3+512], %r3;
  add.s64 %rd3, %rd3, 512;
  add.u32 %r2, %r2, 1;
  setp.lt.u32 %p1, %r2, 4;
  @%p1 bra again;)",
      recorded_reads::first);
  EXPECT_EQ(recorded(recorded_use::read), "0-256:1");
  EXPECT_EQ(recorded(recorded_use::write), "512-768:2 1024-1280:2 1536-1792:2 2048-2304:2");
}

INSTANTIATE_FOR_ENGINES(Recording);

}  // namespace
}  // namespace hpe::ptx::test
