// The output of `hpe explain` for PTX, and for files that it cannot read.

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "apps/command_line/bad_input.h"
#include "apps/hpe/explain/explain_command.h"

namespace {

using hpe::cli::explain_file;
using hpe::cli::explanation;

class ptx_file {
 public:
  explicit ptx_file(const std::string& text)
      : path_(std::filesystem::temp_directory_path() / ("hpe-explain-" + std::to_string(::getpid()) + ".ptx")) {
    std::ofstream(path_) << text;
  }
  ptx_file(const ptx_file&) = delete;
  ptx_file& operator=(const ptx_file&) = delete;
  ~ptx_file() { std::filesystem::remove(path_); }
  [[nodiscard]] std::string path() const { return path_; }

 private:
  std::filesystem::path path_;
};

constexpr const char* add_one =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry _Z7add_onePfi(.param .u64 _Z7add_onePfi_param_0, .param .u32 _Z7add_onePfi_param_1) {\n"
    ".reg .pred %p;\n.reg .f32 %f;\n.reg .b32 %r<6>;\n.reg .b64 %d<4>;\n"
    "ld.param.u64 %d0, [_Z7add_onePfi_param_0];\nld.param.u32 %r0, [_Z7add_onePfi_param_1];\n"
    "mov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %ntid.x;\nmov.u32 %r3, %tid.x;\nmad.lo.s32 %r4, %r1, %r2, %r3;\n"
    "setp.ge.s32 %p, %r4, %r0;\n@%p bra END;\ncvta.to.global.u64 %d1, %d0;\nmul.wide.s32 %d2, %r4, 4;\n"
    "add.s64 %d3, %d1, %d2;\nld.global.f32 %f, [%d3];\nadd.f32 %f, %f, 0f3F800000;\nst.global.f32 [%d3], "
    "%f;\nEND:\nret;\n}\n";

TEST(explain, describes_a_kernel_in_words) {
  const ptx_file file(add_one);
  EXPECT_EQ(explanation(explain_file(file.path(), ""), false),
            file.path() +
                ": 1 kernel, of which 1 could be spread over several GPUs\n\n"
                "add_one(float*, int)\n"
                "  could be spread over several GPUs\n"
                "  arg0: read once, written once, elements of 4 bytes\n"
                "    affine: further by blockDim.x for each block along x; in the block threadIdx.x\n"
                "  cut along x, each GPU uses a part of arg0\n"
                "  assumed: blockIdx.x*blockDim.x + threadIdx.x fits into 32 bits, signed\n");
  const std::string accesses = explanation(explain_file(file.path(), ""), true);
  EXPECT_NE(accesses.find("PTX line 20: ld.global.f32 %f, [%d3];"), std::string::npos) << accesses;
  EXPECT_NE(accesses.find("4*threadIdx.x\n      assumed: blockIdx.x*blockDim.x + threadIdx.x fits"), std::string::npos)
      << accesses;
  EXPECT_NE(accesses.find("where blockIdx.x*blockDim.x + threadIdx.x < arg1"), std::string::npos) << accesses;
}

TEST(explain, chooses_kernels_by_name) {
  EXPECT_EQ(explain_file(HPE_LAUNCH_KERNELS, "spin").modules[0].kernels.size(), 1U);
  EXPECT_GT(explain_file(HPE_LAUNCH_KERNELS, "").modules[0].kernels.size(), 15U);
  EXPECT_TRUE(explain_file(HPE_LAUNCH_KERNELS, "no such kernel").modules[0].kernels.empty());
}

TEST(explain, prints_why_a_kernel_stays_on_one_gpu) {
  const std::string text = explanation(explain_file(HPE_LAUNCH_KERNELS, "spin"), false);
  EXPECT_NE(text.find("stays on one GPU: its blocks wait for each other"), std::string::npos) << text;
  EXPECT_EQ(text.find("cut along"), std::string::npos) << text;
}

TEST(explain, reads_ptx_of_clang) {
  const auto told = [](const char* kernel) { return explanation(explain_file(HPE_CLANG_PTX, kernel), false); };
  const auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  EXPECT_TRUE(has(told("grid_stride"),
                  "affine: further by blockDim.x for each block along x; in the block "
                  "blockDim.x*gridDim.x*k1 + threadIdx.x"))
      << told("grid_stride");
  EXPECT_TRUE(has(told("stencil"), "threadIdx.y*arg2 + threadIdx.x, at offsets -1, 0, 1, -arg2, arg2"))
      << told("stencil");
  EXPECT_TRUE(has(told("product"), "cut along x, each GPU uses a part of arg0, arg2; the whole of arg1"))
      << told("product");
  EXPECT_FALSE(has(told("saxpy"), "assumed")) << told("saxpy");
  EXPECT_TRUE(has(told("chain"), "stays on one GPU: its blocks wait for each other")) << told("chain");
}

TEST(explain, tells_what_keeps_a_kernel_of_an_unchanged_program_on_one_gpu) {
  const ptx_file file(std::string(".version 8.0\n.target sm_80\n.address_size 64\n") +
                      ".visible .entry chase(.param .u64 list) {\n.reg .b64 %d<3>;\nld.param.u64 %d0, [list];\n"
                      "ld.global.u64 %d1, [%d0];\nst.global.u64 [%d1], %d0;\nret;\n}\n");
  const std::string told = explanation(explain_file(file.path(), ""), false);
  EXPECT_NE(
      told.find(
          "could be spread over several GPUs\n    stays on one GPU under hpe run --spread: it reads pointers from "
          "memory"),
      std::string::npos)
      << told;
}

TEST(explain, names_the_defect_of_a_file) {
  const ptx_file broken(std::string(add_one) + ".visible .entry broken() {\nadd.s32 %nowhere, 1, 2;\n}\n");
  const std::string told = explanation(explain_file(broken.path(), ""), false);
  EXPECT_NE(told.find("2 kernels, of which 1 could be spread"), std::string::npos) << told;
  EXPECT_NE(told.find("stays on one GPU: hpe does not know its code: PTX line"), std::string::npos) << told;
  EXPECT_NE(told.find("%nowhere"), std::string::npos) << told;
  EXPECT_THROW(static_cast<void>(explain_file("/nowhere/at/all", "")), hpe::command_line::bad_input);
  EXPECT_THROW(static_cast<void>(explain_file("/bin/sh", "")), hpe::command_line::bad_input);
}

}  // namespace
