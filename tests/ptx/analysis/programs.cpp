// The analysis of kernels that nvcc compiled: its results agree with the source code and with the interpreter.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>

#include "tests/ptx/analysis/fixture.h"

namespace hpe::ptx::test {
namespace {

using analysis::address_class;

class Course : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    program_ = parse({read_file(std::string(HPE_PTX_PROGRAMS) + "/course.ptx")}).release();
  }
  static void TearDownTestSuite() { delete program_; }

  static analysis::kernel_analysis analysed(const std::string& name) {
    const function* const f = program_->find_kernel(name);
    if (f == nullptr) throw std::runtime_error("no kernel " + name);
    return analysis::analyse(*program_, *f);
  }

  /// Returns the patterns of an array in elements, for example "affine x blockDim.x: threadIdx.x [-1, 0, 1]".
  static std::vector<std::string> patterns(const analysis::kernel_analysis& k, const std::string& array) {
    const analysis::words words(*program_, k);
    std::vector<std::string> all;
    for (const analysis::array_use& a : k.arrays) {
      if (words.of_base(a.base) != array) continue;
      for (const analysis::access_pattern& p : a.patterns) {
        std::string text(name_of(p.how));
        for (unsigned axis = 0; axis < 3; ++axis)
          if (p.blocks[axis] != 0)
            text += fmt::format(" {} {}", "xyz"[axis], words.in_elements(p.blocks[axis], a.element));
        text += fmt::format(": {} [", words.in_elements(p.local, a.element));
        for (std::size_t n = 0; n < p.offsets.size(); ++n)
          text.append(n == 0 ? "" : ", ").append(words.in_elements(p.offsets[n], a.element));
        all.push_back(text + "]");
      }
    }
    return all;
  }

  static const ptx::program* program_;
};

const ptx::program* Course::program_ = nullptr;

using strings = std::vector<std::string>;

TEST_F(Course, OneElementForEachThread) {
  const auto k = analysed("saxpy");
  EXPECT_TRUE(k.verdict.may_be_spread());
  EXPECT_TRUE(k.verdict.needs.empty());
  EXPECT_EQ(patterns(k, "arg0"), strings{"affine x blockDim.x: threadIdx.x [0]"});
  EXPECT_EQ(patterns(k, "arg1"), strings{"affine x blockDim.x: threadIdx.x [0]"});
  // 64-bit indices need no assumption.
  for (const analysis::access& a : k.accesses) EXPECT_EQ(a.forms[0].assumes, 0U);
  const analysis::words words(*program_, k);
  ASSERT_EQ(k.accesses[0].where.size(), 1U);
  EXPECT_EQ(words.of(k.accesses[0].where[0]), "blockIdx.x*blockDim.x + threadIdx.x < arg3");
  EXPECT_EQ((std::array{true, false, false}), k.axes);
}

TEST_F(Course, GridStrideLoop) {
  const auto k = analysed("grid_stride");
  EXPECT_EQ(patterns(k, "arg0"), strings{"affine x blockDim.x: blockDim.x*gridDim.x*k1 + threadIdx.x [0]"});
  const analysis::words words(*program_, k);
  const auto& all = k.walk->assumptions().all();
  ASSERT_EQ(k.accesses[0].forms.size(), 1U);
  std::string assumed;
  for (std::size_t n = 0; n < all.size(); ++n)
    if ((k.accesses[0].forms[0].assumes >> n & 1) != 0) assumed += words.of(all[n]) + "\n";
  EXPECT_EQ(assumed, "blockDim.x*gridDim.x*k1 + blockIdx.x*blockDim.x + threadIdx.x fits into 32 bits, signed\n");
}

TEST_F(Course, StencilsHaveNeighbours) {
  const auto k = analysed("stencil");
  EXPECT_EQ(patterns(k, "arg1"),
            strings{"affine x blockDim.x y blockDim.y*arg2: threadIdx.y*arg2 + threadIdx.x [-1, 0, 1, -arg2, arg2]"});
  EXPECT_EQ(patterns(k, "arg0"), strings{"affine x blockDim.x y blockDim.y*arg2: threadIdx.y*arg2 + threadIdx.x [0]"});
  EXPECT_EQ(k.accesses[0].where.size(), 4U);
  const auto clamped = analysed("heat");
  EXPECT_EQ(patterns(clamped, "arg1"),
            (strings{"affine x blockDim.x: threadIdx.x [-1, 0, 1]", "local: 0 [0, arg2 - 1]"}));
}

TEST_F(Course, TransposesCutBothAxes) {
  const auto k = analysed("transpose");
  EXPECT_EQ(patterns(k, "arg1"),
            strings{"affine x 32 y 32*arg2: threadIdx.y*arg2 + threadIdx.x [0, 8*arg2, 16*arg2, 24*arg2]"});
  EXPECT_EQ(patterns(k, "arg0"),
            strings{"affine x 32*arg2 y 32: threadIdx.y*arg2 + threadIdx.x [0, 8*arg2, 16*arg2, 24*arg2]"});
}

TEST_F(Course, MatrixProductNeedsARowOfOneAndAColumnOfTheOther) {
  const auto k = analysed("product");
  for (const analysis::array_use& a : k.arrays) {
    const std::string name = analysis::words(*program_, k).of_base(a.base);
    EXPECT_EQ(a.how, address_class::affine) << name;
    EXPECT_EQ(a.is_cut_by(0), name != "arg1") << name;
    EXPECT_EQ(a.is_cut_by(1), name != "arg2") << name;
  }
}

TEST_F(Course, OthersThatMayBeSpread) {
  for (const char* const name : {"bodies", "monte_carlo", "sparse", "histogram", "flattened", "warp_per_row", "largest",
                                 "queue", "pitched", "frontier", "reduce_last"})
    EXPECT_TRUE(analysed(name).verdict.may_be_spread()) << name;
  EXPECT_EQ(patterns(analysed("bodies"), "arg0"), strings{"affine x blockDim.x: threadIdx.x [0]"});
  EXPECT_EQ(patterns(analysed("histogram"), "arg0"), strings{"local: threadIdx.x [0]"});
  EXPECT_EQ(patterns(analysed("flattened"), "arg1")[0].substr(0, 10), "irregular:");
  EXPECT_EQ(patterns(analysed("pitched"), "arg0"),
            strings{"affine x blockDim.x y blockDim.y*arg2 bytes: threadIdx.y*arg2 + 4*threadIdx.x bytes [0]"});
  const auto sparse = analysed("sparse");
  EXPECT_EQ(patterns(sparse, "arg1"), strings{"affine x blockDim.x: threadIdx.x [0, 1]"});
  for (const std::string& p : patterns(sparse, "arg4")) EXPECT_EQ(p.substr(0, 14), "data-dependent");
}

TEST_F(Course, LastBlockIsFoundByACounter) {
  const auto k = analysed("reduce_last");
  EXPECT_TRUE(k.verdict.counts_blocks);
  EXPECT_EQ(k.verdict.atomics, 1U);
  EXPECT_EQ(k.verdict.fences, 1U);
  EXPECT_EQ(k.verdict.needs[0], "the variable finished in the memory of one device");
  EXPECT_FALSE(analysed("histogram").verdict.counts_blocks);
}

TEST_F(Course, BlocksThatWaitForEachOtherStayTogether) {
  for (const char* const name : {"chain", "own_barrier"}) {
    const auto k = analysed(name);
    ASSERT_EQ(k.verdict.obstacles.size(), 1U) << name;
    EXPECT_NE(k.verdict.obstacles[0].find("wait for each other"), std::string::npos) << name;
    EXPECT_NE(k.verdict.obstacles[0].find("course.cu:"), std::string::npos)
        << "names no line: " << k.verdict.obstacles[0];
  }
}

std::string obstacles(const std::string& program, const std::string& kernel) {
  const auto p = parse({read_file(std::string(HPE_PTX_PROGRAMS) + "/" + program + ".ptx")});
  std::string all;
  for (const std::string& o : analysis::analyse(*p, *p->find_kernel(kernel)).verdict.obstacles) all += o + "\n";
  return all;
}

TEST(Verdicts, NameTheReason) {
  EXPECT_EQ(obstacles("groups", "grid_stages"),
            "its blocks wait for each other: it synchronises the whole grid (grid.sync)\n");
  EXPECT_NE(obstacles("clusters", "cluster_sum").find("clusters"), std::string::npos);
  EXPECT_NE(obstacles("atomics", "spin").find("flag or lock"), std::string::npos);
  EXPECT_NE(obstacles("atomics", "lock").find("flag or lock"), std::string::npos);
  EXPECT_NE(obstacles("calls", "heap").find("malloc"), std::string::npos);
  EXPECT_NE(obstacles("calls", "indirect").find("through a pointer"), std::string::npos);
  EXPECT_NE(obstacles("mathematics", "textures").find("textures"), std::string::npos);
  EXPECT_NE(obstacles("mathematics", "clocks").find("%smid"), std::string::npos);
  EXPECT_EQ(obstacles("vector_add", "vector_add"), "");
  EXPECT_EQ(obstacles("matmul", "matmul"), "");
}

// Arguments: for each 64-bit parameter an array, for each smaller parameter a small number.
TEST(Verdicts, KernelsAccessMemoryAsTheAnalysisSays) {
  const unsigned seed = std::random_device{}();
  fmt::print("seed {}\n", seed);
  std::mt19937 random(seed);
  std::uint64_t exact = 0, alike = 0;
  unsigned kernels = 0, seen = 0;
  std::vector<std::filesystem::path> files{HPE_PTX_LAUNCH_KERNELS, HPE_PTX_CLANG};
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(std::filesystem::path(HPE_PTX_PROGRAMS).parent_path()))
    if (entry.path().extension() == ".ptx") files.push_back(entry.path());
  for (const std::filesystem::path& file : files) {
    checked_program program(read_file(file.string()));
    for (const auto& f : program.program().functions) {
      if (!f->is_kernel) continue;
      const analysis::kernel_analysis k = analysis::analyse(program.program(), *f);
      EXPECT_TRUE(k.walk->is_complete()) << file << " " << f->name;
      ++kernels;
      // Kernels that must not be spread are skipped: they would wait for blocks that this check does not run, or for a
      // cluster.
      if (!k.verdict.may_be_spread()) continue;
      analysis::record_check check(program.image(), k);
      std::vector<std::uint8_t> parameters(f->formals_size + 16);
      for (const formal_parameter& p : f->formals) {
        if (p.size < 8) {
          parameters[p.offset] = static_cast<std::uint8_t>(1 + random() % 60);
          continue;
        }
        constexpr std::size_t bytes = 1 << 16;
        auto* const memory = static_cast<std::uint32_t*>(program.take(bytes));
        for (std::size_t n = 0; n < bytes / 4; ++n) memory[n] = static_cast<std::uint32_t>(random() % 8);
        for (std::uint32_t at = 0; at + 8 <= p.size; at += 8) std::memcpy(&parameters[p.offset + at], &memory, 8);
      }
      const dimensions block = f->required_block[0] != 0
                                   ? dimensions{f->required_block[0], f->required_block[1], f->required_block[2]}
                               : k.axes[1] ? dimensions{8, 8, 1}
                                           : dimensions{32, 1, 1};
      const dimensions grid{3, k.axes[1] ? 2U : 1U, k.axes[2] ? 2U : 1U};
      std::vector<std::uint64_t> blocks{0, 1, grid.count() - 1};
      program.run(check, *f, grid, block, parameters.data(), blocks);
      for (const std::string& c : check.contradictions()) ADD_FAILURE() << file << ": " << c;
      exact += check.exact();
      alike += check.alike();
      seen += check.exact() > 0 ? 1 : 0;
    }
  }
  fmt::print("{} kernels, {} with addresses that were computed; {} accesses exact, {} alike in all blocks\n", kernels,
             seen, exact, alike);
  EXPECT_GT(kernels, 150U);
  EXPECT_GT(seen, 60U);
  EXPECT_GT(exact, 10000U);
}

}  // namespace
}  // namespace hpe::ptx::test
