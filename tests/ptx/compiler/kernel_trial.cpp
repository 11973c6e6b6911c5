// Kernels that begin in the interpreter (kernel_trial.h): when they continue in native code, and what later processes
// know.

#include "runtime/ptx/compiler/kernel_trial.h"

#include <gtest/gtest.h>

#include "runtime/ptx/text/parser.h"
#include "tests/ptx/kernel_runner.h"
#include "tests/temporary_folder.h"

namespace hpe::ptx {
namespace {

// Each thread adds the numbers below `rounds` to its element. In "calls", a function of the program does the last step.
constexpr const char* text = R"(.version 8.6
.target sm_75
.address_size 64
.visible .func (.param .b32 out) same(.param .b32 in) {
  .reg .b32 %r<2>;
  ld.param.b32 %r1, [in];
  st.param.b32 [out], %r1;
  ret;
}
.visible .entry sums(.param .u64 elements, .param .u32 rounds) {
  .reg .b64 %rd<3>;
  .reg .b32 %r<8>;
  .reg .pred %p<2>;
  ld.param.u64 %rd1, [elements];
  ld.param.u32 %r1, [rounds];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.u32 %r2, %r2, %r3, %r4;
  mul.wide.u32 %rd2, %r2, 4;
  add.u64 %rd1, %rd1, %rd2;
  ld.global.u32 %r5, [%rd1];
  mov.u32 %r6, 0;
again:
  add.u32 %r5, %r5, %r6;
  add.u32 %r6, %r6, 1;
  setp.lt.u32 %p1, %r6, %r1;
  @%p1 bra again;
  st.global.u32 [%rd1], %r5;
  ret;
}
.visible .entry calls(.param .u64 elements, .param .u32 rounds) {
  .reg .b32 %r<3>;
  ld.param.u32 %r1, [rounds];
  {
    .param .b32 in;
    st.param.b32 [in], %r1;
    .param .b32 out;
    call (out), same, (in);
    ld.param.b32 %r2, [out];
  }
  ret;
}
)";

class Trial : public ::testing::Test {
 protected:
  // What one process has: a program and its compiled kernels.
  struct process {
    explicit process(const kernel_store& kept = {}) : compiled(compile(own_image, kept)) {}
    [[nodiscard]] const function& kernel(const char* name) const { return *program->find_kernel(name); }

    std::shared_ptr<const ptx::program> program = parse({text});
    image own_image{program, [](std::size_t, std::size_t) -> void* { return nullptr; }};
    std::unique_ptr<compiled_image> compiled;
  };

  void SetUp() override {
    if (!test::has_compiler) GTEST_SKIP() << "built without LLVM: no native code";
  }

  // Runs `blocks` blocks of 32 threads of "sums", and checks their results.
  void run(process& in, kernel_trial& first, std::uint32_t blocks, std::uint32_t rounds) {
    const surroundings around;
    std::vector<std::uint32_t> elements(std::size_t{blocks} * 32, 5);
    struct {
      std::uint32_t* elements;
      std::uint32_t rounds;
    } const parameters{elements.data(), rounds};
    launch_configuration c;
    c.image = &in.own_image;
    c.kernel = &in.kernel("sums");
    c.grid = {blocks};
    c.block = shape_;
    c.parameters = &parameters;
    c.surroundings = &around;
    const auto stopped = first.run(c, {0, blocks}, [] { return std::nullopt; });
    ASSERT_FALSE(stopped) << stopped->message();
    for (const std::uint32_t e : elements) ASSERT_EQ(e, 5 + rounds * (rounds - 1) / 2);
  }

  static constexpr std::uint32_t each_thread = 15;  // the instructions of a thread without its loop
  static constexpr std::uint32_t each_round = 5;    // with the stop
  dimensions shape_{32};
};

TEST_F(Trial, ShortWorkStaysInTheInterpreter) {
  process here;
  kernel_trial first(here.own_image, here.kernel("sums"), *here.compiled, 100'000);
  ASSERT_TRUE(first.is_open(shape_));
  run(here, first, 4, 10);
  EXPECT_EQ(first.work(), 4 * 32 * (each_thread + 10 * each_round));
  EXPECT_TRUE(first.is_open(shape_));
  EXPECT_EQ(here.compiled->find_engine(here.kernel("sums"), shape_), nullptr);
}

TEST_F(Trial, BlocksThatBeginAfterTheLimitRunInNativeCode) {
  process here;
  const std::uint64_t block = 32 * (each_thread + 10 * each_round);
  kernel_trial first(here.own_image, here.kernel("sums"), *here.compiled, 3 * block);
  run(here, first, 50, 10);
  EXPECT_EQ(first.work(), 3 * block) << "the block that reaches the limit is the last one that the interpreter runs";
  EXPECT_FALSE(first.is_open(shape_));
  EXPECT_NE(here.compiled->find_engine(here.kernel("sums"), shape_), nullptr);
}

TEST_F(Trial, AThreadLeavesTheInterpreterInTheMiddleOfALoop) {
  process here;
  const std::uint64_t most = 1000;
  kernel_trial first(here.own_image, here.kernel("sums"), *here.compiled, most);
  run(here, first, 2, 100'000);
  EXPECT_GE(first.work(), 2 * most);
  EXPECT_LE(first.work(), 2 * most + 32 * (each_thread + each_round)) << "each thread stops at its first stop";
}

TEST_F(Trial, LaterProcessesContinueTheCountAndUseStoredCode) {
  const temporary_folder folder;
  const kernel_store kept{folder / "kernels", 64 << 20};
  const std::uint64_t each = 4 * 32 * (each_thread + 10 * each_round), most = 2 * each + 1;
  for (std::uint64_t runs = 0; runs < 3; ++runs) {
    process here(kept);
    kernel_trial first(here.own_image, here.kernel("sums"), *here.compiled, most);
    ASSERT_TRUE(first.is_open(shape_)) << runs;
    EXPECT_EQ(first.work(), runs * each);
    run(here, first, 4, 10);
    first.keep_work();
  }
  {
    process here(kept);
    kernel_trial first(here.own_image, here.kernel("sums"), *here.compiled, most);
    EXPECT_FALSE(first.is_open(shape_));
    EXPECT_NE(here.compiled->engine_for(here.kernel("sums"), shape_), nullptr);
  }
  process here(kept);
  kernel_trial first(here.own_image, here.kernel("sums"), *here.compiled, 1'000'000'000);
  EXPECT_FALSE(first.is_open(shape_)) << "native code is in the store";
}

// A compiler without memory for the kernel.
class failing_compiler final : public compiled_image {
 public:
  explicit failing_compiler(compiled_image& usual) : usual_(usual) {}
  std::shared_ptr<execution_engine> engine_for(const function& /*kernel*/, const dimensions& /*block*/) override {
    ++tries;
    throw std::bad_alloc();
  }
  std::shared_ptr<execution_engine> find_engine(const function& /*kernel*/, const dimensions& /*block*/) override {
    return nullptr;
  }
  std::shared_ptr<execution_engine> successor_for(const function& /*kernel*/) override {
    ++tries;
    throw std::bad_alloc();
  }
  std::uint64_t kept_work(const function& kernel) override { return usual_.kept_work(kernel); }
  void keep_work(const function& kernel, std::uint64_t instructions) override {
    usual_.keep_work(kernel, instructions);
  }
  bool is_compiled(const function& kernel) override { return usual_.is_compiled(kernel); }

  int tries = 0;

 private:
  compiled_image& usual_;
};

// The launch has begun, so it must not fail because of the compiler.
TEST_F(Trial, AKernelThatCannotBeCompiledStaysInTheInterpreter) {
  for (const std::uint32_t rounds : {10, 1000}) {  // blocks begin after the limit, or are to leave the interpreter
    process here;
    failing_compiler compiler(*here.compiled);
    kernel_trial first(here.own_image, here.kernel("sums"), compiler, 3000);
    testing::internal::CaptureStderr();
    run(here, first, 5, rounds);
    const std::string told = testing::internal::GetCapturedStderr();
    EXPECT_EQ(told.find("hpe: kernel sums is interpreted, which is slow, because it cannot be compiled: "), 0U) << told;
    EXPECT_EQ(first.work(), 5 * 32 * (each_thread + rounds * each_round));
    EXPECT_EQ(compiler.tries, 1);
    EXPECT_TRUE(first.is_open(shape_));
  }
}

// The interpreter and native code divide the work of a function's caller in different ways.
TEST_F(Trial, KernelsThatCallFunctionsBeginInNativeCode) {
  process here;
  kernel_trial first(here.own_image, here.kernel("calls"), *here.compiled, 1'000'000);
  EXPECT_FALSE(first.is_open(shape_));
}

}  // namespace
}  // namespace hpe::ptx
