// What a kernel's model says about the memory that the kernel uses besides the arrays of its pointers.

#include <gtest/gtest.h>

#include <string>

#include "runtime/ptx/text/parser.h"
#include "runtime/spread/kernel_model.h"

namespace hpe::spread {
namespace {

/// A kernel with the pointers `from` and `to`, and a number.
kernel_model model_of(const std::string& code, const std::string& before = "") {
  return {ptx::parse({".version 7.0\n.target sm_70\n.address_size 64\n" + before +
                      ".visible .entry k(.param .u64 from, .param .u64 to, .param .u64 number) {\n"
                      ".reg .u32 %r<4>;\n.reg .u64 %d<9>;\n.reg .pred %p;\n"
                      "ld.param.u64 %d1, [from];\nld.param.u64 %d2, [to];\nld.param.u64 %d3, [number];\n" +
                      code + "ret;\n}\n"}),
          "k"};
}

TEST(KnownMemory, OfKernelsThatUseTheirPointersOnly) {
  const kernel_model copies = model_of("ld.global.u32 %r1, [%d1];\nst.global.u32 [%d2], %r1;\n");
  EXPECT_TRUE(copies.knows_writes());
  EXPECT_TRUE(copies.knows_memory());
  ASSERT_EQ(copies.pointers().size(), 2U);
  EXPECT_FALSE(copies.pointers()[0].is_written);
  EXPECT_TRUE(copies.pointers()[1].is_written);
  const kernel_model updates = model_of("atom.global.add.u32 %r1, [%d1], 1;\n");
  EXPECT_TRUE(updates.knows_memory());
  EXPECT_TRUE(updates.pointers()[0].is_written);
}

TEST(KnownMemory, OfKernelsThatFollowPointersInMemory) {
  const std::string follows = "ld.global.u64 %d4, [%d1];\n";
  const kernel_model reads = model_of(follows + "ld.global.u32 %r1, [%d4];\nst.global.u32 [%d2], %r1;\n");
  EXPECT_TRUE(reads.knows_writes());
  EXPECT_FALSE(reads.knows_memory());
  EXPECT_FALSE(model_of(follows + "st.global.u32 [%d4], 1;\n").knows_writes());
}

// The number looks like the base of the address.
TEST(KnownMemory, OfPointersInMemoryWithANumber) {
  const std::string follows = "ld.global.u64 %d4, [%d1];\nadd.u64 %d4, %d4, %d3;\n";
  EXPECT_FALSE(model_of(follows + "st.global.u8 [%d4], 1;\n").knows_writes());
  const kernel_model reads = model_of(follows + "ld.global.u8 %r1, [%d4];\nst.global.u32 [%d2], %r1;\n");
  EXPECT_FALSE(reads.knows_memory());
}

TEST(KnownMemory, OfKernelsThatPrint) {
  const kernel_model prints = model_of(
      "st.global.u32 [%d2], 1;\n{\n.param .b64 a;\n.param .b64 b;\n.param .b32 c;\nst.param.b64 [a], %d1;\n"
      "st.param.b64 [b], 0;\ncall.uni (c), vprintf, (a, b);\n}\n",
      ".extern .func (.param .b32 c) vprintf(.param .b64 a, .param .b64 b);\n");
  EXPECT_TRUE(prints.knows_writes());
  EXPECT_FALSE(prints.knows_memory());
}

}  // namespace
}  // namespace hpe::spread
