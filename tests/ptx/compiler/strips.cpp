// Blocks that are adjacent in x run row by row, as a strip (execution_engine::run_strip).

#include <sys/mman.h>

#include <csignal>

#include "tests/ptx/kernel_generator.h"
#include "tests/ptx/programs_fixture.h"

namespace hpe::ptx::test {
namespace {

// Each thread adds 1 to its element of an array, or, if its number is `wrong`, uses a wrong address.
const char* const text = R"(.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out, .param .u32 wrong, .param .u64 closed) {
  .reg .pred %p<2>;
  .reg .b32 %r<20>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [wrong];
  ld.param.u64 %rd2, [closed];
  mov.u32 %r2, %tid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %ctaid.x;
  mov.u32 %r5, %nctaid.x;
  mad.lo.u32 %r6, %r4, %r3, %r2;   // x
  mov.u32 %r7, %tid.y;
  mov.u32 %r8, %ntid.y;
  mov.u32 %r9, %ctaid.y;
  mad.lo.u32 %r10, %r9, %r8, %r7;  // y
  mul.lo.u32 %r11, %r3, %r5;
  mad.lo.u32 %r12, %r10, %r11, %r6;
  mul.wide.u32 %rd3, %r12, 4;
  add.u64 %rd4, %rd1, %rd3;
  setp.eq.u32 %p1, %r12, %r1;
  selp.b64 %rd5, %rd2, %rd4, %p1;
  ld.global.u32 %r13, [%rd5];
  add.u32 %r13, %r13, 1;
  st.global.u32 [%rd5], %r13;
  ret;
})";

// With x sizes of 32, 16 and 8, the threads of a row run in lanes; with 20, one by one.
const dimensions blocks[] = {{32, 3, 1}, {16, 2, 1}, {8, 5, 1}, {20, 3, 1}, {64, 1, 1}};

using Strips = programs_fixture;

TEST_P(Strips, RunEachThreadOnce) {
  kernel_runner runner({text}, GetParam());
  for (const dimensions& block : blocks)
    for (const std::uint64_t range : {0, 1, 7, 64}) {
      const dimensions grid{151, 2, 1};
      auto* const out = runner.upload(std::vector<unsigned>(grid.count() * block.count()));
      EXPECT_RUNS(runner.launch("k", {.grid = grid, .block = block, .range = range}, out, ~0U, std::uint64_t{0}));
      for (std::size_t n = 0; n < grid.count() * block.count(); ++n) ASSERT_EQ(out[n], 1) << block.x << ' ' << n;
    }
}

void land(int, siginfo_t* info, void*) {
  land_page_fault(reinterpret_cast<std::uint64_t>(info->si_addr));
  std::signal(SIGSEGV, SIG_DFL);
}

TEST_P(Strips, NameTheBlockOfAWrongAddress) {
  struct sigaction action {
  }, before{};
  action.sa_sigaction = land;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, &before);
  void* const closed = ::mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  kernel_runner runner({text}, GetParam());
  for (const dimensions& block : blocks) {
    const dimensions grid{9, 2, 1};
    auto* const out = runner.upload(std::vector<unsigned>(grid.count() * block.count()));
    const dimensions place{5, 1, 0}, thread{3, block.y - 1, 0};  // the block and the thread that use a wrong address
    const unsigned wrong = (place.y * block.y + thread.y) * grid.x * block.x + place.x * block.x + thread.x;
    const auto stopped = runner.launch("k", {grid, block}, out, wrong, closed);
    ASSERT_TRUE(stopped) << block.x;
    EXPECT_EQ(stopped->why, trap::reason::address);
    EXPECT_EQ(stopped->block.x, place.x) << block.x;
    EXPECT_EQ(stopped->block.y, place.y) << block.x;
    EXPECT_EQ(stopped->thread.x, thread.x) << block.x;
    EXPECT_EQ(stopped->thread.y, thread.y) << block.x;
    EXPECT_RUNS(runner.launch("k", {grid, block}, out, ~0U, closed));
  }
  ::munmap(closed, 4096);
  sigaction(SIGSEGV, &before, nullptr);
}

INSTANTIATE_FOR_ENGINES_AND_HANDOVER(Strips);

TEST(RandomStrips, GiveTheResultsOfSingleBlocks) {
  if (!has_compiler) GTEST_SKIP() << "built without LLVM: no native code";
  constexpr unsigned kernels = 6;
  const unsigned first = std::random_device{}();
  fmt::print("seeds {} to {}\n", first, first + (kernels - 1));
  for (unsigned seed = first; seed != first + kernels; ++seed) {
    const std::string random_text = kernel_generator(seed).text_with_results();
    std::mt19937 random(seed);
    const dimensions block = blocks[random() % std::size(blocks)];
    const dimensions grid{1 + static_cast<unsigned>(random() % 80), 2, 1 + static_cast<unsigned>(random() % 2)};
    std::vector<std::uint32_t> table(16);
    for (std::uint32_t& x : table) x = static_cast<std::uint32_t>(random() % 50);
    const auto n = static_cast<std::uint32_t>(random() % 100), stride = static_cast<std::uint32_t>(random() % 40);
    std::vector<std::uint32_t> results[2];
    for (const engine_kind kind : {engine_kind::interpreter, engine_kind::compiler}) {
      kernel_runner runner({random_text}, kind);
      auto* const out = runner.upload(std::vector<std::uint32_t>(grid.count() * block.count(), 77));
      const auto stopped =
          runner.launch("k", {grid, block}, out, std::uint64_t{0}, runner.upload(table), n, stride, 0.0F);
      ASSERT_FALSE(stopped) << "seed " << seed << ": " << stopped->message() << "\n" << random_text;
      results[kind == engine_kind::compiler ? 1 : 0].assign(out, out + grid.count() * block.count());
    }
    ASSERT_EQ(results[0], results[1]) << "seed " << seed << ", blocks of " << block.x << " x " << block.y << "\n"
                                      << random_text;
  }
}

}  // namespace
}  // namespace hpe::ptx::test
