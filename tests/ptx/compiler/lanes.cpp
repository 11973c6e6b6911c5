// Native code runs adjacent threads in lanes of vector registers. Kernels whose lanes diverge, overflow or share an
// address return the same as in the interpreter.

#include <fmt/core.h>
#include <sys/mman.h>

#include <cstdlib>
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
// out[tid - 3] = tid for indices below 60. The indices of threads 0 to 2 wrap around to large numbers.
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
// out[tid] is the number of steps of Collatz's sequence from tid + 1. Lanes leave the loop at different times, and a
// barrier follows the loop.
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
// out[tid] = tid + 7, through an address in local memory that the thread uses after two barriers.
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
// Before the first barrier, whole groups of lanes take different branches, which have separate barrier instructions.
// Before the second barrier, lanes of one group take different branches.
.visible .entry ways(.param .u64 out) {
  .reg .pred %p<4>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  shr.u32 %r2, %r1, 4;
  mov.u32 %r3, 0;
  setp.ge.u32 %p1, %r2, 2;
  @%p1 bra late;
  add.u32 %r3, %r3, 1;
  bar.sync 0;
  add.u32 %r3, %r3, 10;
  bra join;
late:
  add.u32 %r3, %r3, 2;
  bar.sync 0;
  add.u32 %r3, %r3, 20;
join:
  setp.ge.u32 %p2, %r1, 44;
  @%p2 bra other;
  bar.sync 1;
  add.u32 %r3, %r3, 100;
  bra end;
other:
  bar.sync 1;
  add.u32 %r3, %r3, 200;
end:
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r3;
  ret;
}
// Threads 5 to count - 1: contiguous, out[tid] = {in[tid].y, in[tid].x + tid} and small[tid] = small[tid] + 3;
// scattered, out[256 + (tid ^ 6)] = {in[tid ^ 6].y, tid}.
.visible .entry pieces(.param .u64 in, .param .u64 out, .param .u64 small, .param .u32 count) {
  .reg .pred %p<4>;
  .reg .b16 %h<4>;
  .reg .b32 %r<12>;
  .reg .b64 %rd<16>;
  ld.param.u64 %rd1, [in];
  ld.param.u64 %rd2, [out];
  ld.param.u64 %rd3, [small];
  ld.param.u32 %r9, [count];
  mov.u32 %r1, %tid.x;
  setp.lt.u32 %p1, %r1, 5;
  setp.ge.u32 %p2, %r1, %r9;
  or.pred %p3, %p1, %p2;
  @%p3 bra done;
  mul.wide.u32 %rd4, %r1, 8;
  add.u64 %rd5, %rd1, %rd4;
  add.u64 %rd6, %rd2, %rd4;
  ld.global.v2.u32 {%r2, %r3}, [%rd5];
  add.u32 %r2, %r2, %r1;
  st.global.v2.u32 [%rd6], {%r3, %r2};
  cvt.u64.u32 %rd7, %r1;
  add.u64 %rd8, %rd3, %rd7;
  ld.global.u8 %h1, [%rd8];
  add.u16 %h1, %h1, 3;
  st.global.u8 [%rd8], %h1;
  mul.lo.u32 %r6, %r1, 2;
  add.u32 %r6, %r6, 7;
  xor.b32 %r6, %r6, %r9;
  add.u32 %r6, %r6, 11;
  mul.lo.u32 %r7, %r6, %r6;
  add.u32 %r7, %r7, %r6;
  and.b32 %r7, %r7, 1;
  xor.b32 %r4, %r1, 6;
  mul.wide.u32 %rd9, %r4, 8;
  add.u64 %rd10, %rd1, %rd9;
  add.u64 %rd11, %rd2, %rd9;
  ld.global.v2.u32 {%r5, %r8}, [%rd10];
  add.u32 %r10, %r1, %r7;
  st.global.v2.u32 [%rd11+2048], {%r8, %r10};
done:
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

TEST_P(Lanes, MeetAtDifferentBarriers) {
  kernel_runner runner({text}, GetParam());
  unsigned* const out = runner.upload(std::vector<unsigned>(threads));
  ASSERT_FALSE(runner.launch("ways", {{1}, {threads}}, out));
  for (unsigned n = 0; n < threads; ++n) EXPECT_EQ(out[n], (n < 32 ? 11U : 22U) + (n < 44 ? 100U : 200U)) << n;
}

TEST_P(Lanes, AccessPiecesOfMemoryInPart) {
  kernel_runner runner({text}, GetParam());
  constexpr unsigned most = 128;
  std::vector<unsigned> in(2 * most);
  for (unsigned n = 0; n < 2 * most; ++n) in[n] = 1000 + n;
  for (const auto& [block, count] : {std::pair(75U, 75U), {72U, 70U}, {80U, 70U}, {128U, 128U}, {128U, 101U}}) {
    SCOPED_TRACE(block);
    unsigned* const out = runner.upload(std::vector<unsigned>(4 * 2 * most, 7));
    std::uint8_t* const small = runner.upload(std::vector<std::uint8_t>(most, 254));
    ASSERT_FALSE(runner.launch("pieces", {{1}, {block}}, runner.upload(in), out, small, count));
    for (unsigned n = 0; n < most; ++n) {
      const bool runs = n >= 5 && n < count;
      EXPECT_EQ(out[2 * n], runs ? in[2 * n + 1] : 7) << n;
      EXPECT_EQ(out[2 * n + 1], runs ? in[2 * n] + n : 7) << n;
      EXPECT_EQ(small[n], runs ? 1 : 254) << n;
      const bool is_written = (n ^ 6U) >= 5 && (n ^ 6U) < count;
      EXPECT_EQ(out[512 + 2 * n], is_written ? in[2 * n + 1] : 7) << n;
      EXPECT_EQ(out[512 + 2 * n + 1], is_written ? (n ^ 6U) : 7) << n;
    }
  }
}

// Pages between inaccessible pages.
class guarded_pages {
 public:
  guarded_pages() {
    EXPECT_NE(memory_, MAP_FAILED);
    EXPECT_EQ(::mprotect(begin(), size, PROT_READ | PROT_WRITE), 0);
  }
  guarded_pages(const guarded_pages&) = delete;
  guarded_pages& operator=(const guarded_pages&) = delete;
  ~guarded_pages() { ::munmap(memory_, size + 2 * page); }
  [[nodiscard]] std::uint8_t* begin() const { return static_cast<std::uint8_t*>(memory_) + page; }

  static constexpr std::size_t page = 4096, size = 2 * page;

 private:
  void* memory_ = ::mmap(nullptr, size + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
};

// out[tid] is element tid * step of an array that begins or ends beside an inaccessible page; only threads below
// `count` load. If the step is negative, element 0 is the last one of the array.
TEST_P(Lanes, LoadWithGaps) {
  const guarded_pages memory;
  for (std::size_t n = 0; n < guarded_pages::size; ++n)
    memory.begin()[n] = static_cast<std::uint8_t>(n * 7 + n / 256);  // NOLINT(readability-magic-numbers)
  const struct {
    const char *type, *reg;
    int bytes, step;
  } cases[] = {
      {"u8", "%h1", 1, 3}, {"s16", "%h1", 2, -2}, {"u32", "%r5", 4, -3}, {"f32", "%r5", 4, 4}, {"b64", "%rd9", 8, 2}};
  for (const auto& [type, reg, bytes, step] : cases) {
    SCOPED_TRACE(fmt::format("{}, step {}", type, step));
    kernel_runner runner({fmt::format(R"(.version 8.6
.target sm_90
.address_size 64
.visible .entry gaps(.param .u64 in, .param .u64 out, .param .u32 count) {{
  .reg .pred %p<2>;
  .reg .b16 %h<2>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<10>;
  ld.param.u64 %rd1, [in];
  ld.param.u64 %rd2, [out];
  ld.param.u32 %r2, [count];
  mov.u32 %r1, %tid.x;
  mov.b16 %h1, 0;
  mov.b32 %r5, 0;
  mov.b64 %rd9, 0;
  setp.ge.u32 %p1, %r1, %r2;
  @%p1 bra done;
  mul.wide.s32 %rd3, %r1, {};
  add.s64 %rd4, %rd1, %rd3;
  ld.global.{} {}, [%rd4];
  cvt.u32.u16 %r6, %h1;
  cvt.u64.u32 %rd5, %r6;
  cvt.u64.u32 %rd6, %r5;
  or.b64 %rd5, %rd5, %rd6;
  or.b64 %rd9, %rd9, %rd5;
done:
  mul.wide.u32 %rd7, %r1, 8;
  add.u64 %rd8, %rd2, %rd7;
  st.global.u64 [%rd8], %rd9;
  ret;
}}
)",
                                      bytes * step, type, reg)},
                         GetParam());
    runner.lend(memory.begin(), guarded_pages::size);
    const std::size_t whole = std::size_t{threads - 1} * std::size_t(bytes * std::abs(step)) + std::size_t(bytes);
    for (const unsigned count : {threads, 70U})
      for (const std::size_t begin : {std::size_t{0}, guarded_pages::size - whole}) {
        if (begin % std::size_t(bytes) != 0) continue;
        const std::uint8_t* const first = memory.begin() + begin + (step > 0 ? 0 : whole - std::size_t(bytes));
        std::uint64_t* const out = runner.upload(std::vector<std::uint64_t>(threads));
        ASSERT_FALSE(runner.launch("gaps", {{1}, {threads}}, first, out, count));
        for (unsigned n = 0; n < threads; ++n) {
          std::uint64_t expected = 0;
          if (n < count) std::memcpy(&expected, first + std::int64_t{n} * bytes * step, std::size_t(bytes));
          EXPECT_EQ(out[n], expected) << n;
        }
      }
  }
}

// Each thread updates the element place(tid) of an array in global memory and of one in shared memory. `seen` receives
// the values before the update of global memory, and then the content of shared memory.
TEST_P(Lanes, UpdateScatteredElements) {
  constexpr unsigned count = 128;
  const auto place = [](std::uint64_t t) { return (t * 37 + 5) % count; };  // NOLINT(readability-magic-numbers)
  const struct {
    const char* change;  // sets %rd7 to a function of %rd6, %rd5 (the place) and %rd8 (9)
    std::uint64_t (*expected)(std::uint64_t before, std::uint64_t place);
  } cases[] = {{"add.u64 %rd7, %rd6, 3;", [](std::uint64_t a, std::uint64_t) { return a + 3; }},
               {"sub.u64 %rd7, %rd5, %rd6;", [](std::uint64_t a, std::uint64_t p) { return p - a; }},
               {"or.b64 %rd7, %rd8, %rd6;", [](std::uint64_t a, std::uint64_t) { return a | 9; }}};
  // Much arithmetic, so that the region after the barrier runs in lanes.
  std::string arithmetic = "mov.u32 %r5, 1;";
  for (int n = 0; n < 20; ++n) arithmetic += "\n  mad.lo.u32 %r5, %r5, %r5, %r1;";
  arithmetic += "\n  st.shared.u32 [%r7+516], %r5;";
  for (const auto& [change, expected] : cases) {
    SCOPED_TRACE(change);
    kernel_runner runner({fmt::format(R"(.version 8.6
.target sm_90
.address_size 64
.visible .entry update(.param .u64 data, .param .u64 seen, .param .u64 nine) {{
  .shared .align 8 .b8 part[1032];
  .reg .b32 %r<9>;
  .reg .b64 %rd<16>;
  ld.param.u64 %rd2, [data];
  ld.param.u64 %rd3, [seen];
  ld.param.u64 %rd8, [nine];
  mov.u32 %r1, %tid.x;
  shl.b32 %r7, %r1, 2;
  mov.u32 %r4, part;
  add.u32 %r7, %r4, %r7;
  st.shared.u32 [%r7+4], %r1;
  bar.sync 0;
{1}
  mad.lo.u32 %r2, %r1, 37, 5;
  and.b32 %r2, %r2, 127;
  shl.b32 %r8, %r2, 1;
  cvt.u64.u32 %rd5, %r2;
  shl.b64 %rd4, %rd5, 3;
  add.u64 %rd9, %rd2, %rd4;
  cvt.u64.u32 %rd1, %r1;
  shl.b64 %rd10, %rd1, 3;
  add.u64 %rd10, %rd3, %rd10;
  shl.b32 %r3, %r2, 2;
  add.u32 %r4, %r4, %r3;
  ld.global.u64 %rd6, [%rd9+8];
  {0}
  st.global.u64 [%rd9+8], %rd7;
  st.global.u64 [%rd10], %rd6;
  ld.shared.u32 %r5, [%r4+4];
  add.s32 %r6, %r5, %r8;
  st.shared.u32 [%r4+4], %r6;
  bar.sync 0;
  ld.shared.u32 %r5, [%r7+4];
  st.global.u32 [%rd10+4], %r5;
  ret;
}}
)",
                                      change, arithmetic)},
                         GetParam());
    std::vector<std::uint64_t> data(count + 1);
    for (std::size_t n = 0; n < data.size(); ++n) data[n] = n * n;
    std::uint64_t* const changed = runner.upload(data);
    std::uint64_t* const seen = runner.upload(std::vector<std::uint64_t>(count));
    ASSERT_FALSE(runner.launch("update", {{1}, {count}}, changed, seen, std::uint64_t{9}));
    for (std::uint64_t t = 0; t < count; ++t) {
      const std::uint64_t before = data[place(t) + 1];
      EXPECT_EQ(seen[t], before | 3 * t << 32U) << t;
      EXPECT_EQ(changed[place(t) + 1], expected(before, place(t))) << t;
    }
  }
}

// Thread t accesses element t ^ x of arrays, which is contiguous in a group of lanes only for some x. Threads from
// `count` on only take part in the barrier.
TEST_P(Lanes, AccessElementsThatHappenToBeContiguous) {
  constexpr unsigned most = 128;
  kernel_runner runner({R"(.version 8.6
.target sm_90
.address_size 64
.visible .entry chance(.param .u64 in, .param .u64 out, .param .u32 x, .param .u32 count) {
  .shared .align 4 .b8 part[512];
  .reg .pred %p<2>;
  .reg .b32 %r<12>;
  .reg .b64 %rd<12>;
  ld.param.u64 %rd1, [in];
  ld.param.u64 %rd2, [out];
  ld.param.u32 %r2, [x];
  ld.param.u32 %r3, [count];
  mov.u32 %r1, %tid.x;
  xor.b32 %r4, %r1, %r2;
  shl.b32 %r5, %r4, 2;
  mov.u32 %r6, part;
  add.u32 %r6, %r6, %r5;
  setp.ge.u32 %p1, %r1, %r3;
  @%p1 bra wait;
  mul.wide.u32 %rd3, %r4, 4;
  add.u64 %rd4, %rd1, %rd3;
  ld.global.u32 %r7, [%rd4];
  add.u32 %r7, %r7, %r1;
  st.shared.u32 [%r6], %r7;
wait:
  bar.sync 0;
  @%p1 bra done;
  ld.shared.u32 %r8, [%r6];
  mul.wide.u32 %rd5, %r4, 8;
  add.u64 %rd6, %rd2, %rd5;
  st.global.v2.u32 [%rd6], {%r8, %r1};
done:
  ret;
}
)"},
                       GetParam());
  std::vector<unsigned> in(most);
  for (unsigned n = 0; n < most; ++n) in[n] = 1000 * n;
  for (const unsigned x : {0U, 5U, 16U, 32U, 97U})
    for (const unsigned count : {most, 75U}) {
      SCOPED_TRACE(fmt::format("{}, {} threads", x, count));
      unsigned* const out = runner.upload(std::vector<unsigned>(std::size_t{2} * most, 7));
      ASSERT_FALSE(runner.launch("chance", {{1}, {most}}, runner.upload(in), out, x, count));
      for (unsigned t = 0; t < most; ++t) {
        EXPECT_EQ(out[2 * (t ^ x)], t < count ? in[t ^ x] + t : 7) << t;
        EXPECT_EQ(out[2 * (t ^ x) + 1], t < count ? t : 7) << t;
      }
    }
}

INSTANTIATE_FOR_ENGINES(Lanes);

}  // namespace
}  // namespace hpe::ptx::test
