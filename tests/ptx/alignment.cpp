// Accesses to addresses that are not multiples of the access size: both engines refuse them, and name the thread and
// the address.

#include <array>

#include "tests/ptx/programs_fixture.h"

namespace hpe::ptx::test {
namespace {

using Alignment = programs_fixture;  // NOLINT(readability-identifier-naming): the name of a suite

constexpr unsigned blocks = 3, threads = 48;

// k(data, offset): in thread 37 of block 1, adds the offset to %rd1, the address that `body` accesses. In `body`, %r1
// is 1 and %rd0 is the parameter data. The kernel has local, shared and dynamic shared memory, which begin at multiples
// of 64.
std::string text_with(const std::string& body) {
  return R"(.version 8.6
.target sm_90
.address_size 64
.extern .shared .align 16 .b8 dynamic[];
.func (.param .b32 result) read(.param .b64 from) {
  .reg .b32 %r<2>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [from];
  ld.u32 %r1, [%rd1];
  st.param.b32 [result], %r1;
  ret;
}
.visible .entry k(.param .u64 data, .param .u64 offset) {
  .local .align 64 .b8 mine[128];
  .shared .align 64 .b8 box[128];
  .reg .pred %p<4>;
  .reg .b16 %h<4>;
  .reg .b32 %r<12>;
  .reg .b64 %rd<8>;
  .reg .f64 %fd<4>;
  ld.param.u64 %rd0, [data];
  ld.param.u64 %rd2, [offset];
  mov.u32 %r1, 1;
  mov.u32 %r2, %tid.x;
  mov.u32 %r3, %ctaid.x;
  setp.eq.u32 %p1, %r2, 37;
  setp.eq.and.u32 %p1, %r3, 1, %p1;
  selp.u64 %rd2, %rd2, 0, %p1;
  )" + body +
         "\nret;\n}\n";
}

const std::string global = "add.u64 %rd1, %rd0, %rd2;\n";
const std::string shared = "mov.u64 %rd1, box;\nadd.u64 %rd1, %rd1, %rd2;\n";
const std::string dynamic = "mov.u64 %rd1, dynamic;\nadd.u64 %rd1, %rd1, %rd2;\n";
const std::string local = "mov.u64 %rd1, mine;\nadd.u64 %rd1, %rd1, %rd2;\n";

struct access {
  const char* name;
  std::string code;
  unsigned bytes;
};

std::vector<access> accesses() {
  return {
      {"16 bits", global + "ld.global.u16 %h1, [%rd1];\nst.global.u16 [%rd1], %h1;", 2},
      {"32 bits", global + "ld.global.u32 %r4, [%rd1];", 4},
      {"store", global + "st.global.u32 [%rd1], %r1;", 4},
      {"behind an offset", global + "ld.global.u32 %r4, [%rd1+16];", 4},
      {"double", global + "ld.global.f64 %fd1, [%rd1];", 8},
      {"pair", global + "ld.global.v2.u32 {%r4, %r5}, [%rd1];", 8},
      {"four", global + "ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%rd1];", 16},
      {"four stored", global + "st.global.v4.u32 [%rd1], {%r1, %r1, %r1, %r1};", 16},
      {"volatile", global + "ld.volatile.global.u32 %r4, [%rd1];", 4},
      {"acquire", global + "ld.acquire.gpu.u64 %rd4, [%rd1];", 8},
      {"atom", global + "atom.global.add.u32 %r4, [%rd1], %r1;", 4},
      {"atom of 64", global + "mov.u64 %rd4, 1;\natom.global.add.u64 %rd5, [%rd1], %rd4;", 8},
      {"red", global + "red.global.max.u32 [%rd1], %r1;", 4},
      {"generic", global + "ld.u32 %r4, [%rd1];", 4},
      {"shared", shared + "st.shared.u32 [%rd1], %r1;", 4},
      {"shared atom", shared + "atom.shared.add.u32 %r4, [%rd1], %r1;", 4},
      {"shared, generic", shared + "cvta.shared.u64 %rd1, %rd1;\nst.u32 [%rd1], %r1;", 4},
      {"in shared::cluster", shared + "ld.shared::cluster.u32 %r4, [%rd1];", 4},
      {"dynamic shared", dynamic + "st.shared.v4.u32 [%rd1], {%r1, %r1, %r1, %r1};", 16},
      {"local", local + "st.local.u32 [%rd1], %r1;", 4},
      {"local, generic", local + "cvta.local.u64 %rd1, %rd1;\nst.v4.u32 [%rd1], {%r1, %r1, %r1, %r1};", 16},
      {"asynchronous copy", global + "mov.u64 %rd4, box;\ncp.async.ca.shared.global [%rd4], [%rd1], 8;", 8},
      {"in a function",
       global + "{\n.param .b64 from;\nst.param.b64 [from], %rd1;\n.param .b32 result;\n"
                "call (result), read, (from);\nld.param.b32 %r4, [result];\n}\n",
       4},
      {"in a loop",
       global + "mov.u32 %r5, 0;\nMORE:\nld.global.u32 %r4, [%rd1];\nst.global.u32 [%rd1], %r4;\n"
                "add.u64 %rd1, %rd1, 4;\nadd.u32 %r5, %r5, 1;\nsetp.lt.u32 %p2, %r5, 8;\n@%p2 bra MORE;",
       4},
  };
}

TEST_P(Alignment, EachAccessIsChecked) {
  for (const access& a : accesses()) {
    kernel_runner runner({text_with(a.code)}, GetParam());
    EXPECT_EQ(runner.is_compiled("k"), GetParam() == engine_kind::compiler) << a.name;
    auto* const data = static_cast<std::uint8_t*>(runner.allocate(256));
    for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{a.bytes}, std::uint64_t{64}})
      EXPECT_RUNS(runner.launch("k", {{blocks}, {threads}, 128}, data, offset));
    for (const std::uint64_t offset : {std::uint64_t{a.bytes} / 2, 1 + random_() % (a.bytes - 1)}) {
      const auto stopped = runner.launch("k", {{blocks}, {threads}, 128}, data, offset);
      ASSERT_TRUE(stopped.has_value()) << a.name << ", offset " << offset;
      EXPECT_EQ(stopped->why, trap::reason::misaligned) << a.name << ": " << stopped->message();
      EXPECT_EQ(stopped->kernel, "k") << a.name;
      EXPECT_EQ(stopped->block.x, 1U) << a.name;
      EXPECT_EQ(stopped->thread.x, 37U) << a.name;
      EXPECT_EQ(stopped->address % 64 % a.bytes, offset) << a.name << ": " << stopped->message();
    }
  }
}

// Misalignment is also reported for an address outside of all memory, as on a GPU.
TEST_P(Alignment, ComesBeforeWhoseMemoryItIs) {
  kernel_runner runner({text_with(global + "ld.global.u32 %r4, [%rd1];")}, GetParam());
  const auto stopped = runner.launch("k", {{1}, {1}}, std::uint64_t{6}, std::uint64_t{0});
  ASSERT_TRUE(stopped.has_value());
  EXPECT_EQ(stopped->why, trap::reason::misaligned) << stopped->message();
  EXPECT_EQ(stopped->address, 6U);
}

// Native code checks all accesses of a basic block at once, so accesses before the failing one may not happen.
TEST_P(Alignment, TheThreadStopsThere) {
  kernel_runner runner(
      {text_with("ld.param.u64 %rd2, [offset];\nadd.u64 %rd1, %rd0, %rd2;\nst.global.u32 [%rd0], %r1;\n"
                 "bra NEXT;\nNEXT:\nst.global.u32 [%rd1+32], %r1;\nst.global.u32 [%rd0+16], %r1;")},
      GetParam());
  auto* const data = static_cast<std::uint32_t*>(runner.allocate(64));
  const auto stopped = runner.launch("k", {{1}, {1}}, data, std::uint64_t{3});
  ASSERT_TRUE(stopped.has_value());
  EXPECT_EQ(stopped->address, reinterpret_cast<std::uint64_t>(data) + 35);
  EXPECT_EQ((std::array{data[0], data[4], data[8], data[9]}), (std::array{1U, 0U, 0U, 0U}));
}

// The addresses depend on earlier reads and writes in the same basic block, so their checks cannot be moved to the
// beginning of this basic block.
TEST_P(Alignment, OfAddressesThatAreReadFromMemory) {
  kernel_runner runner(
      {text_with("ld.global.u64 %rd1, [%rd0];\nld.global.u64 %rd3, [%rd1];\nst.global.u32 [%rd1+8], %r1;\n"
                 "@%p1 add.u64 %rd3, %rd3, %rd0;\nmov.u64 %rd1, %rd3;\nld.global.u32 %r4, [%rd1];\n"
                 "st.global.u32 [%rd0+24], %r4;\nadd.u64 %rd1, %rd0, 16;\n"
                 "st.global.u32 [%rd1+16], %r4;")},
      GetParam());
  struct linked {
    std::uint64_t first, second;
    std::uint32_t mark, padding, copy, more, last;
  };
  auto* const data = static_cast<linked*>(runner.allocate(64));
  const auto begin = reinterpret_cast<std::uint64_t>(data);
  *data = {begin + 8, begin + 16, 0, 0, 0, 0, 0};
  EXPECT_RUNS(runner.launch("k", {{1}, {1}}, data, std::uint64_t{0}));
  EXPECT_EQ(data->mark, 1U);
  EXPECT_EQ(data->copy, 1U);
  EXPECT_EQ(data->last, 1U);
  *data = {begin + 8, begin + 17, 0, 0, 0, 0, 0};
  auto stopped = runner.launch("k", {{1}, {1}}, data, std::uint64_t{0});
  ASSERT_TRUE(stopped.has_value());
  EXPECT_EQ(stopped->address, begin + 17);
  EXPECT_EQ(data->mark, 1U);
  EXPECT_EQ(data->copy, 0U);
  *data = {begin + 12, 0, 0, 0, 0, 0, 0};
  stopped = runner.launch("k", {{1}, {1}}, data, std::uint64_t{0});
  ASSERT_TRUE(stopped.has_value());
  EXPECT_EQ(stopped->address, begin + 12);
}

INSTANTIATE_FOR_ENGINES(Alignment);

}  // namespace
}  // namespace hpe::ptx::test
