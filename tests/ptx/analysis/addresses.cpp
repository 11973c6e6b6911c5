// Addresses as compilers write them for large parameters, for elements of one thread, and for negative indices. The
// analysis must find the address expressions of the source code, and the interpreter must access these addresses.

#include <gtest/gtest.h>

#include "hpe/error.hpp"
#include "tests/ptx/analysis/fixture.h"

namespace hpe::ptx::test {
namespace {

using analysis::address_class;

constexpr const char* head = ".version 8.0\n.target sm_80\n.address_size 64\n";

/// A kernel over two arrays of 4 KiB, to which its first two parameters point, and the accesses that the analysis
/// finds.
class Addresses : public testing::Test {
 protected:
  void analyse(const std::string& text) {
    program_ = std::make_unique<checked_program>(head + text);
    kernel_ = program_->program().find_kernel("k");
    found_ = analysis::analyse(program_->program(), *kernel_);
  }

  /// Runs the kernel's blocks, with `numbers` as the parameters after the pointers. Every access must agree with its
  /// record.
  void check(dimensions grid, dimensions block, const std::vector<std::uint64_t>& numbers) {
    std::vector<std::uint64_t> parameters{reinterpret_cast<std::uint64_t>(program_->take(4096)),
                                          reinterpret_cast<std::uint64_t>(program_->take(4096))};
    parameters.insert(parameters.end(), numbers.begin(), numbers.end());
    analysis::record_check check(program_->image(), found_);
    std::vector<std::uint64_t> blocks;
    for (std::uint64_t n = 0; n < grid.count(); ++n) blocks.push_back(n);
    program_->run(check, *kernel_, grid, block, parameters.data(), blocks);
    for (const std::string& c : check.contradictions()) ADD_FAILURE() << c;
    EXPECT_GT(check.exact(), 0U);
    EXPECT_EQ(check.unchecked(), 0U);
  }

  [[nodiscard]] std::string address(std::size_t access) {
    return analysis::words(program_->program(), found_).of(found_.accesses.at(access).forms.at(0).whole);
  }
  [[nodiscard]] std::string base(std::size_t access) {
    return analysis::words(program_->program(), found_).of_base(found_.accesses.at(access).forms.at(0).base);
  }

  std::unique_ptr<checked_program> program_;
  const function* kernel_ = nullptr;
  analysis::kernel_analysis found_;
};

// nvcc writes the members of a large functor in this way: the address of the parameter is in a register.
TEST_F(Addresses, ParametersThroughARegister) {
  analyse(R"(.visible .entry k(.param .align 8 .b8 k_param_0[32]) {
  .reg .b64 %d<9>; .reg .b32 %r<4>; .reg .pred %p;
  mov.b64 %d0, k_param_0; add.s64 %d7, %d0, 8; cvta.param.u64 %d8, %d0;
  ld.param.u64 %d1, [%d0]; ld.param.u64 %d2, [%d7]; ld.param.u32 %r3, [%d0+16];
  cvta.to.global.u64 %d3, %d1; cvta.to.global.u64 %d4, %d2;
  mov.u32 %r0, %ctaid.x; mov.u32 %r1, %tid.x; mad.lo.s32 %r2, %r0, %r3, %r1;
  mul.wide.s32 %d5, %r2, 4; add.s64 %d6, %d4, %d5; ld.global.u32 %r1, [%d6]; add.s64 %d6, %d3, %d5; st.global.u32 [%d6], %r1;
  ld.u32 %r1, [%d8+24];
  ret;
})");
  ASSERT_EQ(found_.accesses.size(), 2U);  // parameters are not global memory
  EXPECT_EQ(base(0), "arg0[8]");
  EXPECT_EQ(base(1), "arg0");
  EXPECT_EQ(address(1), "arg0 + 4*blockIdx.x*arg0[16] + 4*threadIdx.x");
  EXPECT_EQ(found_.accesses[0].how, address_class::affine);
  EXPECT_EQ(found_.accesses[1].how, address_class::affine);
  check({4, 1, 1}, {32, 1, 1}, {32, 5});
}

// If a loop counter selects the parameter, its value is unknown, and a pointer in it is not one of the kernel's
// pointers.
TEST_F(Addresses, ParametersByIndexAreUnknown) {
  analyse(R"(.visible .entry k(.param .align 8 .b8 k_param_0[16], .param .u32 n) {
  .reg .b64 %d<5>; .reg .b32 %r<4>;
  mov.b64 %d0, k_param_0; ld.param.u32 %r0, [n]; mul.wide.u32 %d1, %r0, 8; add.s64 %d2, %d0, %d1;
  ld.param.u64 %d3, [%d2]; cvta.to.global.u64 %d4, %d3; st.global.u32 [%d4], %r0;
  ret;
})");
  ASSERT_EQ(found_.accesses.size(), 1U);
  ASSERT_TRUE(found_.accesses[0].forms[0].base);
  EXPECT_NE(found_.walk->table().of(*found_.accesses[0].forms[0].base).what, analysis::quantity::kind::parameter);
}

// LLVM writes 1024 * blockIdx.x + 4 * threadIdx.x + 3 with `or` and `and` instead of sums, if blocks have at most 128
// threads.
TEST_F(Addresses, ApartBitsAreASum) {
  analyse(R"(.visible .entry k(.param .u64 k_param_0, .param .u64 k_param_1) .reqntid 128, 1, 1 {
  .reg .b64 %d<9>; .reg .b32 %r<9>;
  ld.param.u64 %d0, [k_param_0]; ld.param.u64 %d1, [k_param_1];
  cvta.to.global.u64 %d2, %d0; cvta.to.global.u64 %d3, %d1;
  mov.u32 %r0, %ctaid.x; shl.b32 %r0, %r0, 8; mov.u32 %r1, %tid.x; and.b32 %r1, %r1, 127; shl.b32 %r1, %r1, 1;
  or.b32 %r2, %r0, %r1; or.b32 %r3, %r2, 1; xor.b32 %r4, %r2, 1;
  mul.wide.s32 %d4, %r3, 4; add.s64 %d5, %d2, %d4; ld.global.u32 %r5, [%d5];
  mul.wide.s32 %d6, %r4, 4; add.s64 %d7, %d3, %d6; st.global.u32 [%d7], %r5;
  ret;
})");
  EXPECT_EQ(address(0), "arg0 + 1024*blockIdx.x + 8*threadIdx.x + 4");
  EXPECT_EQ(address(1), "arg1 + 1024*blockIdx.x + 8*threadIdx.x + 4");
  check({4, 1, 1}, {128, 1, 1}, {});
}

// nvcc writes blockIdx.x << 7 | threadIdx.x in this way.
TEST_F(Addresses, FieldsOfBitsAreASum) {
  analyse(R"(.visible .entry k(.param .u64 k_param_0, .param .u64 k_param_1) .maxntid 128, 1, 1 {
  .reg .b64 %d<9>; .reg .b32 %r<9>;
  ld.param.u64 %d0, [k_param_0]; cvta.to.global.u64 %d2, %d0;
  mov.u32 %r0, %ctaid.x; mov.u32 %r1, %tid.x;
  bfi.b32 %r2, %r0, %r1, 7, 25; mul.wide.u32 %d4, %r2, 4; add.s64 %d5, %d2, %d4; ld.global.u32 %r5, [%d5];
  bfi.b32 %r3, %r1, 512, 2, 7; mul.wide.u32 %d4, %r3, 4; add.s64 %d5, %d2, %d4; ld.global.u32 %r5, [%d5];
  bfi.b32 %r4, %r0, %r1, 3, 29; mul.wide.u32 %d4, %r4, 4; add.s64 %d5, %d2, %d4; ld.global.u32 %r5, [%d5];
  ret;
})");
  EXPECT_EQ(address(0), "arg0 + 512*blockIdx.x + 4*threadIdx.x");
  EXPECT_EQ(address(1), "arg0 + 16*threadIdx.x + 2048");
  EXPECT_EQ(found_.accesses[2].how, address_class::irregular) << "bits of threadIdx.x are replaced";
  check({4, 1, 1}, {128, 1, 1}, {});
}

// If a bit may be set in both operands, an addition would carry, so the `or` is not a sum.
TEST_F(Addresses, BitsThatMeetAreNoSum) {
  analyse(R"(.visible .entry k(.param .u64 k_param_0, .param .u64 k_param_1) {
  .reg .b64 %d<9>; .reg .b32 %r<9>;
  ld.param.u64 %d0, [k_param_0]; cvta.to.global.u64 %d2, %d0;
  mov.u32 %r0, %ctaid.x; shl.b32 %r0, %r0, 4; mov.u32 %r1, %tid.x; and.b32 %r1, %r1, 31;
  or.b32 %r2, %r0, %r1; mul.wide.u32 %d4, %r2, 4; add.s64 %d5, %d2, %d4; st.global.u32 [%d5], %r0;
  add.s32 %r3, %r0, %r1; and.b32 %r4, %r3, 15; mul.wide.u32 %d4, %r4, 4; add.s64 %d5, %d2, %d4; st.global.u32 [%d5], %r0;
  ret;
})");
  EXPECT_EQ(found_.accesses[0].how, address_class::irregular);
  EXPECT_EQ(found_.accesses[1].how, address_class::irregular);
  check({4, 1, 1}, {32, 1, 1}, {});
}

// The mask keeps some terms of a sum completely, and removes the other terms.
TEST_F(Addresses, MasksKeepTerms) {
  analyse(R"(.visible .entry k(.param .u64 k_param_0, .param .u64 k_param_1) .maxntid 64, 1, 1 {
  .reg .b64 %d<9>; .reg .b32 %r<9>;
  ld.param.u64 %d0, [k_param_0]; cvta.to.global.u64 %d2, %d0;
  mov.u32 %r0, %ctaid.x; mov.u32 %r1, %tid.x; mad.lo.s32 %r2, %r0, 64, %r1;
  and.b32 %r3, %r2, 63; mul.wide.u32 %d4, %r3, 4; add.s64 %d5, %d2, %d4; ld.global.u32 %r4, [%d5];
  and.b32 %r5, %r2, -64; mul.wide.s32 %d4, %r5, 4; add.s64 %d5, %d2, %d4; st.global.u32 [%d5], %r4;
  ret;
})");
  EXPECT_EQ(address(0), "arg0 + 4*threadIdx.x");
  EXPECT_EQ(found_.accesses[0].how, address_class::local);
  EXPECT_EQ(address(1), "arg0 + 256*blockIdx.x");
  check({4, 1, 1}, {64, 1, 1}, {});
}

// Numba writes a[i] in this way: an index below 0 counts from the end.
TEST_F(Addresses, IndicesThatWrapAtZero) {
  analyse(
      R"(.visible .entry k(.param .u64 k_param_0, .param .u64 k_param_1, .param .u64 k_param_2, .param .u64 k_param_3) {
  .reg .b64 %d<12>; .reg .b32 %r<9>;
  ld.param.u64 %d0, [k_param_0]; ld.param.u64 %d1, [k_param_1]; ld.param.u64 %d2, [k_param_2]; ld.param.u64 %d3, [k_param_3];
  cvta.to.global.u64 %d0, %d0; cvta.to.global.u64 %d1, %d1;
  mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x; mad.lo.s32 %r3, %r0, %r1, %r2; cvt.s64.s32 %d4, %r3;
  shr.s64 %d5, %d4, 63; and.b64 %d5, %d5, %d2; add.s64 %d5, %d5, %d4; shl.b64 %d5, %d5, 2; add.s64 %d5, %d0, %d5;
  ld.global.u32 %r4, [%d5];
  add.s64 %d6, %d4, %d3; shr.s64 %d7, %d6, 63; and.b64 %d7, %d2, %d7; add.s64 %d7, %d7, %d6; shl.b64 %d7, %d7, 2;
  add.s64 %d7, %d1, %d7; st.global.u32 [%d7], %r4;
  ret;
})");
  EXPECT_EQ(address(0), "arg0 + 4*blockIdx.x*blockDim.x + 4*threadIdx.x") << "the index is never negative";
  EXPECT_EQ(found_.accesses[0].how, address_class::affine);
  ASSERT_EQ(found_.accesses[1].forms.size(), 2U) << "the index is negative, or it is not";
  EXPECT_EQ(found_.accesses[1].how, address_class::affine);
  check({4, 1, 1}, {32, 1, 1}, {1024, std::uint64_t(-40)});
}

/// Returns whether code of a program may write a variable `v`.
bool may_be_written(const std::string& body, const std::string& before = "",
                    const std::string& variable = ".b8 v[64]") {
  const auto p = parse({head + (".global .align 8 " + variable + ";\n") + before +
                        ".visible .entry k(.param .u64 out, .param .u32 n) {\n.reg .b64 %d<9>;\n.reg .b32 %r<9>;\n.reg "
                        ".pred %p<3>;\nld.param.u64 %d0, [out];\nld.param.u32 %r0, [n];\n" +
                        body + "ret;\n}\n"},
                       warp_order::independent, unknown_code::left_out);
  return p->find_symbol("v")->may_be_written;
}

TEST(Variables, ThatNoCodeWrites) {
  const std::string by_index = "mov.u64 %d1, v;\nmul.wide.u32 %d2, %r0, 4;\nadd.s64 %d3, %d1, %d2;\n";
  EXPECT_FALSE(may_be_written("ld.global.u32 %r1, [v+4];\n"));
  EXPECT_FALSE(may_be_written(by_index + "ld.global.nc.u32 %r1, [%d3];\nst.global.u32 [%d0], %r1;\n"));
  EXPECT_FALSE(
      may_be_written("mov.u64 %d1, v;\nadd.s64 %d4, %d1, 64;\nL:\nld.global.u32 %r1, [%d1];\nadd.s64 %d1, %d1, "
                     "4;\nsetp.ne.s64 %p0, %d1, %d4;\n@%p0 bra L;\n"));
  EXPECT_FALSE(may_be_written("mov.u64 %d1, v;\ncvta.global.u64 %d2, %d1;\nld.u32 %r1, [%d2];\n"));
  EXPECT_TRUE(may_be_written("st.global.u32 [v], %r0;\n"));
  EXPECT_TRUE(may_be_written(by_index + "red.global.add.u32 [%d3], 1;\n"));
  EXPECT_TRUE(may_be_written(by_index + "st.global.u64 [%d0], %d3;\n")) << "the address may be used elsewhere";
  EXPECT_TRUE(may_be_written(by_index + "setp.lt.u64 %p0, %d3, %d0;\n"));
  EXPECT_TRUE(may_be_written("{\n.param .b64 a;\nmov.u64 %d1, v;\nst.param.b64 [a], %d1;\ncall f, (a);\n}\n",
                             ".func f(.param .b64 a) {\nret;\n}\n"));
  EXPECT_TRUE(may_be_written("ld.global.u32 %r1, [v];\n", ".global .align 8 .u64 where = v;\n"));
  EXPECT_TRUE(
      may_be_written("ld.global.u32 %r1, [v];\n", ".visible .entry other() {\n.reg .b32 %r;\nunheard.of %r, [v];\n}\n"))
      << "code that hpe does not know may write the variable";
}

constexpr const char* unknown = R"(
.global .texref picture;
.visible .entry unknown(.param .u64 out) { .reg .b64 %d<3>; ld.param.u64 %d0, [out]; wgmma.what.sync.aligned {%f0}, %d0, (3, 4); { ret; } }
.visible .entry seeing(.param .u64 out) { .reg .b64 %d<3>; .reg .f32 %f<5>; ld.param.u64 %d0, [out];
  tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [picture, {%f4, %f4}]; ret; }
.visible .entry calling() { .reg .b32 %r<2>; call missing; ret; }
.visible .entry k(.param .u64 out) { .reg .b64 %d<3>; .reg .b32 %r<2>; ld.param.u64 %d0, [out]; mov.u32 %r0, %ctaid.x;
  mul.wide.u32 %d1, %r0, 4; add.s64 %d1, %d0, %d1; st.global.u32 [%d1], %r0; ret; }
)";

// Kernels with code that hpe does not know do not affect the other kernels of their text.
TEST(UnknownCode, LeavesOtherKernels) {
  const std::string text = head + std::string(".extern .func missing;\n") + unknown;
  EXPECT_THROW(static_cast<void>(parse({text})), hpe::error);
  const auto p = parse({text}, warp_order::independent, unknown_code::left_out);
  std::vector<analysis::kernel_analysis> all;
  for (const char* const name : {"unknown", "seeing", "calling", "k"})
    all.push_back(analysis::analyse(*p, *p->find_kernel(name)));
  for (std::size_t n = 0; n < 3; ++n) {
    ASSERT_EQ(all[n].verdict.obstacles.size(), 1U) << all[n].kernel->name;
    EXPECT_EQ(all[n].verdict.obstacles[0].find("hpe does not know its code: PTX line "), 0U)
        << all[n].verdict.obstacles[0];
  }
  EXPECT_NE(all[0].verdict.obstacles[0].find("wgmma"), std::string::npos);
  EXPECT_TRUE(all[3].verdict.may_be_spread());
  std::vector<const analysis::kernel_analysis*> pointers;
  for (const auto& a : all) pointers.push_back(&a);
  const patch::patched_module made = patch::patch(*p, pointers);
  EXPECT_TRUE(made.find("k")->obstacles.empty());
  ASSERT_EQ(made.texts.size(), 1U);
  EXPECT_EQ(made.texts[0].find("wgmma"), std::string::npos);
  EXPECT_NE(made.texts[0].find(".entry k("), std::string::npos);
}

// If a kernel is launched without programmatic dependencies, griddepcontrol does not wait.
TEST(UnknownCode, WaitsForEarlierGridsAreNoObstacle) {
  const auto p =
      parse({head +
             std::string(".visible .entry k() {\ngriddepcontrol.wait;\ngriddepcontrol.launch_dependents;\nret;\n}\n")});
  EXPECT_TRUE(analysis::analyse(*p, *p->find_kernel("k")).verdict.may_be_spread());
}

}  // namespace
}  // namespace hpe::ptx::test
