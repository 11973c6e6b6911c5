// Native code computes f16 and bf16 in vectors of f32 and f64. For 16-bit numbers of all magnitudes, with partners that
// cause ties, overflow, subnormals and cancellation, native code returns the same as the interpreter, whose results
// agree with an H200.

#include "tests/ptx/programs_fixture.h"

namespace hpe::ptx::test {
namespace {

constexpr std::uint32_t numbers = 1 << 13;  // number of threads

// Code that sets %r9 from %h1, %h2, %h3 (16 bits), %r1, %r2, %r3 (32 bits), %f1 and %f2.
std::vector<std::string> half_cases() {
  std::vector<std::string> all;
  const auto one = [&](const std::string& operation, const std::string& operands) {
    all.push_back(fmt::format("{} %h4, {};\ncvt.u32.u16 %r9, %h4;\n", operation, operands));
  };
  const auto two = [&](const std::string& operation, const std::string& operands) {
    all.push_back(fmt::format("{} %r9, {};\n", operation, operands));
  };
  for (const std::string t : {"f16", "bf16"}) {
    const std::string x2 = t + "x2";
    for (const char* const operation : {"add", "sub", "mul", "min", "max", "min.NaN", "max.NaN"}) {
      one(fmt::format("{}.{}", operation, t), "%h1, %h2");
      two(fmt::format("{}.{}", operation, x2), "%r1, %r2");
    }
    for (const char* const operation : {"fma.rn", "fma.rn.relu"}) {
      one(fmt::format("{}.{}", operation, t), "%h1, %h2, %h3");
      two(fmt::format("{}.{}", operation, x2), "%r1, %r2, %r3");
    }
    for (const char* const operation : {"neg", "abs"}) {
      one(fmt::format("{}.{}", operation, t), "%h1");
      two(fmt::format("{}.{}", operation, x2), "%r1");
    }
    for (const char* const how : {"rn", "rz", "rn.relu"}) {
      one(fmt::format("cvt.{}.{}.f32", how, t), "%f1");
      two(fmt::format("cvt.{}.{}.f32", how, x2), "%f1, %f2");
    }
    two(fmt::format("cvt.f32.{}", t), "%h1");
    for (const char* const how :
         {"eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"})
      all.push_back(fmt::format("setp.{}.{} %p1, %h1, %h2;\nselp.u32 %r9, 1, 0, %p1;\n", how, t));
  }
  for (const char* const how : {"ltu", "lt", "geu"})  // each comparison under a mask
    all.push_back(
        fmt::format("and.b32 %r9, %r1, 1;\nsetp.ne.u32 %p1, %r9, 0;\n@%p1 setp.{}.f16 %p1, %h1, %h2;\n"
                    "selp.u32 %r9, 1, 0, %p1;\n",
                    how));
  for (const char* const operation : {"add.ftz", "sub.sat", "mul.ftz.sat", "min.ftz", "max.ftz"}) {
    one(fmt::format("{}.f16", operation), "%h1, %h2");
    two(fmt::format("{}.f16x2", operation), "%r1, %r2");
  }
  for (const char* const operation : {"fma.rn.ftz", "fma.rn.sat", "fma.rn.ftz.relu"}) {
    one(fmt::format("{}.f16", operation), "%h1, %h2, %h3");
    two(fmt::format("{}.f16x2", operation), "%r1, %r2, %r3");
  }
  two("cvt.ftz.f32.f16", "%h1");
  two("cvt.sat.f32.f16", "%h1");
  for (const char* const how : {"rni", "rzi", "rmi", "rpi"}) {
    one(fmt::format("cvt.{}.f16.f16", how), "%h1");
    two(fmt::format("cvt.{}.s32.f16", how), "%h1");
    two(fmt::format("cvt.{}.u32.f16", how), "%h1");
  }
  one("cvt.rn.f16.s32", "%r1");
  one("cvt.rn.f16.u32", "%r1");
  one("cvt.rn.f16.s16", "%h1");
  return all;
}

TEST(Halves, NativeCodeIsTheInterpreterBitForBit) {
  if (!has_compiler) GTEST_SKIP() << "built without LLVM: no native code";
  const auto cases = half_cases();
  std::string text = R"(.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out) {
  .reg .pred %p<2>;
  .reg .b16 %h<6>;
  .reg .b32 %r<12>;
  .reg .f32 %f<3>;
  .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [in];
  ld.param.u64 %rd2, [out];
  mov.u32 %r10, %tid.x;
  mov.u32 %r4, %tid.y;
  mov.u32 %r5, %ntid.x;
  mad.lo.u32 %r10, %r4, %r5, %r10;
  mov.u32 %r11, %ctaid.x;
  mad.lo.u32 %r10, %r11, 256, %r10;
  mul.wide.u32 %rd3, %r10, 16;
  add.u64 %rd1, %rd1, %rd3;
  mul.wide.u32 %rd4, %r10, 4;
  add.u64 %rd2, %rd2, %rd4;
  ld.global.u32 %r1, [%rd1];
  ld.global.u32 %r2, [%rd1+4];
  ld.global.u32 %r3, [%rd1+8];
  ld.global.f32 %f1, [%rd1+12];
  mov.b32 %f2, %r3;
  cvt.u16.u32 %h1, %r1;
  cvt.u16.u32 %h2, %r2;
  cvt.u16.u32 %h3, %r3;
)";
  for (std::size_t n = 0; n < cases.size(); ++n)
    text += fmt::format("{}st.global.u32 [%rd2+{}], %r9;\n", cases[n], n * 4 * numbers);
  text += "ret;\n}\n";
  std::mt19937 random(4);
  // Partners of each number: any number, one of nearly the same magnitude, the number with the other sign, or a special
  // number.
  const std::uint16_t special[] = {0x0000, 0x8000, 0x0001, 0x8001, 0x03ff, 0x0400, 0x3c00, 0xbc00,
                                   0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0x7d01, 0x007f, 0x0080,
                                   0x3f80, 0x7f7f, 0x7f80, 0xff80, 0x7fc0, 0x3c01};
  const auto partner = [&](std::uint32_t of) -> std::uint32_t {
    switch (random() % 4) {
      case 0: return random() & 0xffff;
      case 1: return (of ^ (random() & 0x83ff)) & 0xffff;
      case 2: return (of ^ 0x8000) & 0xffff;
      default: return special[random() % std::size(special)];
    }
  };
  std::vector<std::uint32_t> in;
  for (std::uint32_t n = 0; n < numbers; ++n) {
    const std::uint32_t a = 0x10000 / numbers * n + random() % (0x10000 / numbers);
    const std::uint32_t above = partner(a);
    in.push_back(a | above << 16);
    in.push_back(partner(a) | partner(above) << 16);
    in.push_back(partner(a) | partner(above) << 16);
    // An f32 at or next to the middle between two halves, or any f32.
    const std::uint32_t bits = a << 16 | (random() % 2 == 0 ? 0x8000U + random() % 3 - 1 : random() & 0xffff);
    const std::uint32_t scaled = (bits & 0x80000fff) | ((bits >> 1) & 0x07fff000) | 0x38000000;
    in.push_back(random() % 2 == 0 ? bits : (scaled & ~0x1fffU) | (0x1000U + random() % 3 - 1));
  }
  kernel_runner native({text}, engine_kind::compiler), interpreted({text}, engine_kind::interpreter);
  auto *const of_native = native.upload(in), *const of_interpreted = interpreted.upload(in);
  ASSERT_TRUE(native.is_compiled("k"));
  auto* const wanted = interpreted.upload(std::vector<std::uint32_t>(numbers * cases.size()));
  EXPECT_RUNS(interpreted.launch("k", {{numbers / 256}, {256}}, of_interpreted, wanted));
  // Three block shapes: one runs in 16 lanes (8 if the processor lacks AVX-512), one in 8 lanes, and one thread by
  // thread.
  for (const dimensions block : {dimensions{256}, dimensions{8, 32}, dimensions{4, 64}}) {
    auto* const got = native.upload(std::vector<std::uint32_t>(numbers * cases.size()));
    EXPECT_RUNS(native.launch("k", {{numbers / 256}, block}, of_native, got));
    for (std::size_t n = 0; n < cases.size(); ++n)
      for (std::size_t a = 0; a < numbers; ++a)
        ASSERT_EQ(got[n * numbers + a], wanted[n * numbers + a])
            << block.x << ": " << cases[n]
            << fmt::format("of {:#x}, {:#x}, {:#x}, {:#x}: {:#x}, interpreted {:#x}", in[4 * a], in[4 * a + 1],
                           in[4 * a + 2], in[4 * a + 3], got[n * numbers + a], wanted[n * numbers + a]);
  }
}

}  // namespace
}  // namespace hpe::ptx::test
