// Tests the text of patched kernels, and that the parts of a grid compute the same as the whole grid.
// tests/ptx/programs*.cpp also run all kernels of the test programs in parts.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/ptx/kernel_generator.h"
#include "tests/ptx/kernel_runner.h"

namespace hpe::ptx::test {
namespace {

constexpr const char* head = ".version 8.0\n.target sm_80\n.address_size 64\n";

patch::patched_module patched(const std::string& text) {
  const auto p = parse({text});
  std::vector<analysis::kernel_analysis> all;
  for (const auto& f : p->functions)
    if (f->is_kernel) all.push_back(analysis::analyse(*p, *f));
  std::vector<const analysis::kernel_analysis*> pointers;
  for (const auto& a : all) pointers.push_back(&a);
  return patch::patch(*p, pointers);
}

/// Returns the statement that replaces a statement of a kernel in the patched kernel.
std::string patched_statement(const std::string& statement) {
  const auto made =
      patched(fmt::format("{}.visible .entry k(.param .u64 a) {{\n.reg .b64 %rd<3>;\n.reg .b32 %r<3>;\nld.param.u64 "
                          "%rd1, [a];\nBEGIN: {}\nEND: ret;\n}}\n",
                          head, statement));
  if (made.texts.empty()) return made.kernels[0].obstacles[0];
  const std::size_t begin = made.texts[0].find("BEGIN: ") + 7;
  return made.texts[0].substr(begin, made.texts[0].find("\nEND:") - begin);
}

TEST(Patch, DeviceScopeBecomesSystemScope) {
  for (const auto& [before, after] : std::vector<std::pair<std::string, std::string>>{
           {"atom.global.add.u32 %r1, [%rd1], 1;", "atom.sys.global.add.u32 %r1, [%rd1], 1;"},
           {"atom.add.u32 %r1, [%rd1], 1;", "atom.sys.add.u32 %r1, [%rd1], 1;"},
           {"atom.acq_rel.gpu.global.add.u32 %r1, [%rd1], 1;", "atom.acq_rel.sys.global.add.u32 %r1, [%rd1], 1;"},
           {"atom.relaxed.global.add.u32 %r1, [%rd1], 1;", "atom.relaxed.sys.global.add.u32 %r1, [%rd1], 1;"},
           {"atom.global.cta.add.u32 %r1, [%rd1], 1;", "atom.global.cta.add.u32 %r1, [%rd1], 1;"},
           {"atom.shared.add.u32 %r1, [%r2], 1;", "atom.shared.add.u32 %r1, [%r2], 1;"},
           {"red.global.add.f32 [%rd1], 0f3F800000;", "red.sys.global.add.f32 [%rd1], 0f3F800000;"},
           {"red.release.gpu.global.add.u32 [%rd1], 1;", "red.release.sys.global.add.u32 [%rd1], 1;"},
           {"membar.gl;", "membar.sys;"},
           {"membar.cta;", "membar.cta;"},
           {"fence.acq_rel.gpu;", "fence.acq_rel.sys;"},
           {"fence.sc.cta;", "fence.sc.cta;"},
           {"ld.acquire.gpu.global.u32 %r1, [%rd1];", "ld.acquire.sys.global.u32 %r1, [%rd1];"},
           {"st.relaxed.gpu.global.u32 [%rd1], %r1;", "st.relaxed.sys.global.u32 [%rd1], %r1;"},
           {"ld.volatile.global.u32 %r1, [%rd1];", "ld.volatile.global.u32 %r1, [%rd1];"}})
    EXPECT_EQ(patched_statement(before), after);
}

TEST(Patch, KernelsThatMustStayTogetherAreLeftOut) {
  const auto made = patched(std::string(head) +
                            ".visible .entry good() {\nret;\n}\n.visible .entry number() {\n.reg .b64 %rd<2>;\nmov.u64 "
                            "%rd1, %gridid;\nret;\n}\n.visible .entry multiprocessor() {\n.reg .b32 %r<2>;\nmov.u32 "
                            "%r1, %smid;\nret;\n}\n");
  ASSERT_EQ(made.kernels.size(), 3U);
  EXPECT_TRUE(made.find("good")->obstacles.empty());
  EXPECT_NE(made.find("number")->obstacles.at(0).find("%gridid"), std::string::npos);
  EXPECT_NE(made.find("multiprocessor")->obstacles.at(0).find("%smid"), std::string::npos);
  const auto p = parse(made.texts);
  EXPECT_NE(p->find_kernel("good"), nullptr);
  EXPECT_EQ(p->find_kernel("number"), nullptr);
  EXPECT_EQ(p->find_kernel("multiprocessor"), nullptr);
  EXPECT_TRUE(patched(std::string(head) + ".visible .entry number() {\n.reg .b64 %rd<2>;\nmov.u64 %rd1, %gridid;\n}\n")
                  .texts.empty());
}

// Functions that read the block index, directly or through other functions, with and without arguments and results;
// variables with offsets, as operands and in addresses; and a variable whose initial value is an address.
TEST(Patch, FunctionsAndVariables) {
  const std::string text = std::string(head) +
                           R"(.visible .global .align 4 .u32 counter;
.global .align 4 .u32 many[4] = {1, 2, 3, 4};
.global .align 8 .u64 where = many+8;
.const .align 8 .u64 also = many;
.const .align 4 .u32 factor = 1000;
.func (.param .b32 result) index();
.func note { .reg .b32 %r<2>; mov.u32 %r1, %nctaid.x; atom.global.max.u32 %r1, [counter], %r1; ret; }
.func (.param .b32 result) twice(.param .b32 of) {
  .reg .b32 %r<4>;
  { .param .b32 value; call (value), index; ld.param.b32 %r1, [value]; }
  ld.param.b32 %r2, [of];
  mad.lo.u32 %r3, %r1, 2, %r2;
  st.param.b32 [result], %r3;
  ret;
}
.func (.param .b32 result) index() {
  .reg .b32 %r<4>;
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y; mov.u32 %r3, %nctaid.x;
  mad.lo.u32 %r1, %r2, %r3, %r1;
  st.param.b32 [result], %r1;
  ret;
}
.visible .entry k(.param .u64 out) {
  .reg .b64 %rd<6>; .reg .b32 %r<9>;
  ld.param.u64 %rd1, [out];
  call note;
  { .param .b32 of; .param .b32 value; st.param.b32 [of], 5; call.uni (value), twice, (of); ld.param.b32 %r1, [value]; }
  { .param .b32 value; call.uni (value), index, (); ld.param.b32 %r2, [value]; }
  mul.wide.u32 %rd2, %r2, 4; add.s64 %rd1, %rd1, %rd2;
  ld.global.u32 %r3, [many+4];
  mov.u64 %rd3, many+12; ld.global.u32 %r4, [%rd3];
  ld.global.u64 %rd4, [where]; ld.global.u32 %r5, [%rd4];
  ld.const.u64 %rd5, [also]; ld.global.u32 %r6, [%rd5];
  ld.const.u32 %r7, [factor];
  add.u32 %r8, %r3, %r4; add.u32 %r8, %r8, %r5; add.u32 %r8, %r8, %r6;
  mad.lo.u32 %r8, %r8, %r7, %r1;
  st.global.u32 [%rd1], %r8;
  ret;
}
)";
  for (const engine_kind kind :
       {engine_kind::interpreter, engine_kind::interpreter_in_parts, engine_kind::compiler_in_parts}) {
    if (kind == engine_kind::compiler_in_parts && !has_compiler) continue;
    kernel_runner runner({text}, kind);
    auto* const out = runner.upload(std::vector<std::uint32_t>(35));
    const auto stopped = runner.launch("k", {{7, 5}, {1}}, out);
    ASSERT_FALSE(stopped) << stopped->message();
    for (std::uint32_t n = 0; n < 35; ++n) EXPECT_EQ(out[n], (2 + 4 + 3 + 1) * 1000 + 2 * n + 5) << n;
    EXPECT_EQ(*static_cast<std::uint32_t*>(runner.address_of("counter")), 7U);
    EXPECT_TRUE(kind == engine_kind::interpreter || runner.patched()->kernels[0].obstacles.empty());
  }
}

// Variables that no kernel writes are copied, like constants. For example, the tables of the compiler's functions are
// such variables.
TEST(Patch, VariablesThatAreOnlyRead) {
  const std::string text = std::string(head) +
                           R"(.visible .global .align 4 .u32 table[4] = {1, 2, 3, 4};
.global .align 4 .b8 __cudart_i2opi_f[8] = {5, 0, 0, 0, 6, 0, 0, 0};
.visible .global .align 4 .u32 written;
.visible .entry k(.param .u64 out) {
  .reg .b64 %rd<6>; .reg .b32 %r<9>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %ctaid.x; and.b32 %r2, %r1, 3; mul.wide.u32 %rd2, %r2, 4; mov.u64 %rd3, table; add.s64 %rd3, %rd3, %rd2;
  ld.global.u32 %r3, [%rd3]; ld.global.u32 %r4, [__cudart_i2opi_f+4]; add.u32 %r3, %r3, %r4;
  mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2; st.global.u32 [%rd1], %r3;
  ret;
}
.visible .entry other() { st.global.u32 [written], 7; ret; }
)";
  const auto made = patched(text);
  EXPECT_EQ(made.constants, std::vector<std::string>{"table"});
  EXPECT_TRUE(made.find("k")->uses_constants);
  EXPECT_FALSE(made.find("k")->uses_variables);
  EXPECT_TRUE(made.find("other")->uses_variables);
  ASSERT_EQ(made.tables.size(), 1U);
  EXPECT_EQ(made.tables[0].variables, std::vector<std::string>{"written"});
  for (const engine_kind kind : {engine_kind::interpreter, engine_kind::interpreter_in_parts}) {
    kernel_runner runner({text}, kind);
    // like a program that writes the variable before the launch
    static_cast<std::uint32_t*>(runner.address_of("table"))[1] = 20;
    auto* const out = runner.upload(std::vector<std::uint32_t>(8));
    const auto stopped = runner.launch("k", {{8}, {1}}, out);
    ASSERT_FALSE(stopped) << stopped->message();
    for (std::uint32_t n = 0; n < 8; ++n) EXPECT_EQ(out[n], 6 + (n % 4 == 1 ? 20 : n % 4 + 1)) << n;
  }
}

TEST(Patch, RandomKernelsGiveTheSameInPartsAsWhole) {
  const char* const given = std::getenv("HPE_TEST_SEED");
  const unsigned first =
      given != nullptr ? static_cast<unsigned>(std::strtoul(given, nullptr, 10)) : std::random_device{}();
  const unsigned kernels = given != nullptr ? 1 : 150;
  fmt::print("seeds {} to {}\n", first, first + (kernels - 1));
  const dimensions grid{5, 3, 2}, block{4, 3, 2};
  const std::size_t threads = grid.count() * block.count();
  for (unsigned seed = first; seed != first + kernels; ++seed) {
    const std::string text = kernel_generator(seed).text_with_results();
    std::vector<std::uint32_t> results[2];
    for (const bool in_parts : {false, true}) {
      kernel_runner runner({text}, in_parts ? engine_kind::interpreter_in_parts : engine_kind::interpreter);
      std::mt19937 random(seed);
      std::vector<std::uint32_t> table(16);
      for (std::uint32_t& x : table) x = static_cast<std::uint32_t>(random() % 50);
      auto* const out = runner.upload(std::vector<std::uint32_t>(threads, 77));
      const auto stopped =
          runner.launch("k", {grid, block}, out, std::uint64_t{0}, runner.upload(table),
                        static_cast<std::uint32_t>(random() % 100), static_cast<std::uint32_t>(random() % 40), 0.0F);
      ASSERT_FALSE(stopped) << "seed " << seed << ": " << stopped->message() << "\n" << text;
      ASSERT_TRUE(!in_parts || runner.patched()->kernels[0].obstacles.empty()) << "seed " << seed;
      results[in_parts ? 1 : 0].assign(out, out + threads);
    }
    ASSERT_EQ(results[0], results[1]) << "seed " << seed << "\n" << text;
  }
}

}  // namespace
}  // namespace hpe::ptx::test
