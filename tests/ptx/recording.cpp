// Recorded accesses: which bytes a kernel reads, writes and changes atomically, and at which instruction.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "runtime/ptx/execution/textures/texture.h"
#include "tests/ptx/programs_fixture.h"

namespace hpe::ptx::test {
namespace {

constexpr std::size_t bytes = 4096;

class Recording : public ::testing::TestWithParam<engine_kind> {
 protected:
  void SetUp() override {
    if (GetParam() == engine_kind::compiler && !has_compiler) GTEST_SKIP() << "built without LLVM: no native code";
  }

  // Runs the body of a kernel in `blocks` blocks of 64 threads. %rd1 is the address of `bytes` bytes, %r1 is the
  // thread's number, %r0 the block's, and %rd3 the address of element %r1.
  void run(const std::string& body, std::uint32_t blocks = 1, recorded_reads reads = recorded_reads::all) {
    const std::string text = R"(.version 8.0
.target sm_75
.address_size 64
.file 1 "kernel.cu"
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
  mov.u32 %r0, %ctaid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
)" + body + "\n  ret;\n}\n";
    const auto program = parse({text});
    sites_ = find_access_sites(*program).size();
    pairs_.emplace(find_access_sites(*program));
    places_.size = bytes;
    memory_.assign((bytes + places_.bytes()) / sizeof(std::uint64_t), 0);
    auto* const begin = reinterpret_cast<std::uint8_t*>(memory_.data());
    places_.base = reinterpret_cast<std::uint64_t>(begin);
    places_.begin = places_.base + bytes;
    kernel_runner runner({text}, GetParam(), warp_order::independent, {}, &places_, reads);
    runner.lend(begin, bytes + places_.bytes());
    // A surface and texture of 16 elements of four bytes, at byte 512; its description is at byte 2560.
    texture described;
    described.data = begin + 512;
    described.width = 16;
    described.pitch = 64;
    described.format = texture::element::u32;
    std::memcpy(begin + 2560, static_cast<const void*>(&described), sizeof described);
    EXPECT_RUNS(runner.launch("k", {{blocks}, {64}}, begin));
    if (GetParam() == engine_kind::compiler) {
      EXPECT_TRUE(runner.is_compiled("k"));
    }
  }

  // Returns the number that is recorded for a byte; 0 if there is none.
  [[nodiscard]] unsigned number(recorded_use use, std::size_t colour, std::size_t byte) const {
    const auto* const record = reinterpret_cast<const std::uint8_t*>(memory_.data()) + bytes;
    const unsigned of_byte = record[places_.bytes_of(use, colour) + byte];
    return of_byte != 0 ? of_byte : record[places_.words_of(use, colour) + byte / record_places::word];
  }

  // Like number(), for the first colour that has one.
  [[nodiscard]] unsigned number(recorded_use use, std::size_t byte) const {
    for (std::size_t colour = 0; colour < recorded_colours; ++colour)
      if (const unsigned found = number(use, colour, byte); found != 0) return found;
    return 0;
  }

  // The recorded bytes of a use, as "begin-end:site", in one colour or in all colours.
  [[nodiscard]] std::string recorded(recorded_use use, std::optional<std::size_t> colour = {}) const {
    const auto number = [&](recorded_use how, std::optional<std::size_t> in, std::size_t byte) {
      return in ? this->number(how, *in, byte) : this->number(how, byte);
    };
    std::string result;
    for (std::size_t n = 0; n < bytes;) {
      const unsigned here = number(use, colour, n);
      std::size_t end = n;
      while (end < bytes && number(use, colour, end) == here) ++end;
      if (here != 0)
        result += std::string(result.empty() ? "" : " ") + std::to_string(n) + "-" + std::to_string(end) + ":" +
                  std::to_string(here);
      n = end;
    }
    return result;
  }

  record_places places_;
  std::vector<std::uint64_t> memory_;
  std::size_t sites_ = 0;
  std::optional<site_pairs> pairs_;
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
  EXPECT_EQ(recorded(recorded_use::atomic), "0-4:1 8-12:2 24-28:4");
  EXPECT_EQ(recorded(recorded_use::strong_read), "16-20:3");
  EXPECT_EQ(recorded(recorded_use::read) + recorded(recorded_use::write), "");
}

// Thread n reads word 37 n modulo 64, and writes word 42 n modulo 64 of others.
TEST_P(Recording, OfScatteredAccesses) {
  run(R"(  mul.lo.u32 %r2, %r1, 37;
  and.b32 %r2, %r2, 63;
  mul.wide.u32 %rd4, %r2, 4;
  add.s64 %rd5, %rd1, %rd4;
  ld.global.u32 %r3, [%rd5];
  mul.lo.u32 %r4, %r1, 42;
  and.b32 %r4, %r4, 63;
  mul.wide.u32 %rd6, %r4, 4;
  add.s64 %rd7, %rd1, %rd6;
  st.global.u32 [%rd7+1024], %r3;)");
  EXPECT_EQ(recorded(recorded_use::read), "0-256:1");
  std::string written;
  for (int n = 0; n < 64; n += 2)
    written +=
        std::string(n == 0 ? "" : " ") + std::to_string(1024 + 4 * n) + "-" + std::to_string(1028 + 4 * n) + ":2";
  EXPECT_EQ(recorded(recorded_use::write), written);
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

// Neighbouring blocks have different colours, in native code also if several blocks run together.
TEST_P(Recording, OfBlocksInTwoColours) {
  run(R"(  mul.wide.u32 %rd4, %r0, 256;
  add.s64 %rd5, %rd3, %rd4;
  st.global.u32 [%rd5], %r1;
  setp.eq.u32 %p1, %r1, 0;
  @%p1 ld.global.u8 %h1, [%rd5+3];)",
      3);
  EXPECT_EQ(recorded(recorded_use::write, 0), "0-256:1 512-768:1");
  EXPECT_EQ(recorded(recorded_use::write, 1), "256-512:1");
  EXPECT_EQ(recorded(recorded_use::read, 0), "3-4:2 515-516:2");
  EXPECT_EQ(recorded(recorded_use::read, 1), "259-260:2");
  EXPECT_EQ(recorded(recorded_use::write, 2), "");
}

// After a block has read the result of an atomic operation, its accesses may be ordered after those of other blocks.
TEST_P(Recording, OfAccessesThatMayBeOrdered) {
  run(R"(  setp.eq.u32 %p1, %r1, 0;
  @%p1 st.global.u32 [%rd1+8], %r1;
  @%p1 red.global.add.u32 [%rd1+64], 1;
  @%p1 st.global.u32 [%rd1+12], %r1;
  @%p1 atom.global.add.u32 %r2, [%rd1+68], 1;
  @%p1 st.global.u32 [%rd1+16], %r2;)");
  EXPECT_EQ(recorded(recorded_use::write, 0), "8-12:1 12-16:3");
  EXPECT_EQ(recorded(recorded_use::atomic, 0), "64-68:2 68-72:4");
  EXPECT_EQ(recorded(recorded_use::write, 2), "16-20:5");
}

TEST_P(Recording, OfVolatileLoads) {
  run(R"(  ld.volatile.global.u32 %r2, [%rd3];
  st.global.u32 [%rd3+1024], %r2;)");
  EXPECT_EQ(recorded(recorded_use::strong_read), "0-256:1");
  EXPECT_EQ(recorded(recorded_use::write, 0) + recorded(recorded_use::write, 1), "");
  EXPECT_EQ(recorded(recorded_use::write, 2), "1024-1280:2");
}

// An access whose offset is no multiple of 4 from its register.
TEST_P(Recording, OfWordsAtOddOffsets) {
  run(R"(  add.s64 %rd4, %rd3, 1;
  ld.global.u32 %r2, [%rd4+1031];
  ld.global.u32 %r3, [%rd4+-1];)");
  EXPECT_EQ(recorded(recorded_use::read), "0-256:2 1032-1288:1");
}

TEST_P(Recording, OfMatrices) {
  run(R"(  .reg .b32 %a<8>;
  mov.u32 %r2, 16;
  wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%a0, %a1, %a2, %a3, %a4, %a5, %a6, %a7}, [%rd1], %r2;
  wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%rd1+1024], {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}, %r2;)");
  EXPECT_EQ(recorded(recorded_use::read), "0-512:1");
  EXPECT_EQ(recorded(recorded_use::write), "1024-2048:2");
}

TEST_P(Recording, OfSurfacesAndTextures) {
  run(R"(  add.s64 %rd4, %rd1, 2560;
  setp.ne.u32 %p1, %r1, 3;
  @%p1 bra done;
  mov.u32 %r4, 8;
  suld.b.1d.b32.trap {%r2}, [%rd4, {%r4}];
  sust.b.1d.b32.trap [%rd4, {%r4}], {%r1};
  tex.1d.v4.u32.s32 {%r5, %r6, %r7, %r8}, [%rd4, {%r1}];
done:)");
  EXPECT_EQ(recorded(recorded_use::read), "520-524:1 524-528:3");
  EXPECT_EQ(recorded(recorded_use::write), "520-524:2");
}

TEST_P(Recording, OfBulkCopies) {
  run(R"(  mov.u64 %rd4, room;
  cvt.u32.u64 %r3, %rd4;
  setp.eq.u32 %p1, %r1, 0;
  @%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd1+256], [%r3], 64;)");
  EXPECT_EQ(recorded(recorded_use::read), "");
  EXPECT_EQ(recorded(recorded_use::write), "256-320:1");
}

// All accesses of one line of the source have the same number.
TEST_P(Recording, ByLinesOfTheSource) {
  run(R"(  .loc 1 7 0
  ld.global.u32 %r2, [%rd3];
  ld.global.u32 %r3, [%rd3+256];
  .loc 1 8 0
  ld.global.u32 %r3, [%rd3+512];
  .loc 1 7 0
  st.global.u32 [%rd3+1024], %r3;)");
  EXPECT_EQ(recorded(recorded_use::read), "0-512:1 512-768:2");
  EXPECT_EQ(recorded(recorded_use::write), "1024-1280:1");
}

TEST_P(Recording, TellsWhichPairsAreRaces) {
  using enum recorded_use;
  run(R"(  setp.eq.u32 %p1, %r1, 99;
  mov.u32 %r4, 7;
  @%p1 st.global.u32 [%rd1], 7;
  @%p1 st.global.u32 [%rd1], %r4;
  @%p1 st.global.u32 [%rd1], %r1;
  @%p1 ld.global.u32 %r2, [%rd1];
  @%p1 red.global.add.u32 [%rd1], 1;
  @%p1 red.global.max.u32 [%rd1], 1;
  @%p1 ld.volatile.global.u32 %r2, [%rd1];)");
  const std::uint8_t seven = 1, also_seven = 2, other = 3, load = 4, add = 5, maximum = 6, strong = 7;
  EXPECT_FALSE(pairs_->race(write, seven, write, also_seven));
  EXPECT_TRUE(pairs_->race(write, seven, write, other));
  EXPECT_TRUE(pairs_->race(write, other, write, other));
  EXPECT_TRUE(pairs_->race(read, load, write, seven));
  EXPECT_TRUE(pairs_->race(write, seven, read, load));
  EXPECT_FALSE(pairs_->race(read, load, read, load));
  EXPECT_TRUE(pairs_->race(read, load, atomic, add));
  EXPECT_FALSE(pairs_->race(atomic, maximum, read, load));
  EXPECT_TRUE(pairs_->race(atomic, maximum, write, other));
  EXPECT_FALSE(pairs_->race(atomic, add, atomic, add));
  EXPECT_FALSE(pairs_->race(strong_read, strong, atomic, add));
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
      1, recorded_reads::first);
  std::string bytes_read;
  for (int n = 5; n < 64; ++n)
    bytes_read += std::string(" ") + std::to_string(3072 + 4 * n) + "-" + std::to_string(3073 + 4 * n) + ":10";
  EXPECT_EQ(recorded(recorded_use::read), "0-256:1 2068-2304:7" + bytes_read);
}

// A block may know the writes of other blocks only after it has read memory with an atomic operation.
TEST_P(Recording, OfReadsOfWritesByOtherBlocks) {
  run(R"(  setp.eq.u32 %p1, %r0, 0;
  @%p1 st.global.u32 [%rd3], %r1;
  @%p1 st.global.u8 [%rd3+512], %r1;
  @!%p1 ld.global.u32 %r2, [%rd3];
  bar.sync 0;
  @!%p1 atom.global.add.u32 %r4, [%rd1+1024], 1;
  @!%p1 ld.global.u32 %r2, [%rd3];
  @!%p1 ld.global.u16 %h1, [%rd3+512];
  @!%p1 ld.global.u8 %h1, [%rd3+2];
  @!%p1 ld.global.u32 %r2, [%rd3+2048];)",
      2, recorded_reads::first);
  EXPECT_EQ(recorded(recorded_use::read, 1), "0-256:3");
  EXPECT_EQ(recorded(recorded_use::read, 2), "2048-2304:8");
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
      1, recorded_reads::first);
  EXPECT_EQ(recorded(recorded_use::read), "0-256:1");
  EXPECT_EQ(recorded(recorded_use::write), "512-768:2 1024-1280:2 1536-1792:2 2048-2304:2");
}

INSTANTIATE_FOR_ENGINES(Recording);

}  // namespace
}  // namespace hpe::ptx::test
