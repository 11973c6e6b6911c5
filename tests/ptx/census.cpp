// Checks that hpe runs the instructions that CUDA programs use: the mnemonics in a census of 167 public programs
// (census.txt: mnemonic and number of occurrences, the most frequent first), and all instructions in the PTX that nvcc
// makes of the programs here.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "runtime/ptx/text/parser.h"
#include "tests/ptx/kernel_runner.h"

namespace hpe::ptx::test {
namespace {

TEST(Census, EveryInstructionOfItIsInTheTable) {
  std::ifstream file(HPE_PTX_CENSUS);
  std::string mnemonic, missing;
  double count = 0, all = 0, known = 0;
  while (file >> mnemonic >> count) {
    all += count;
    if (find_form(mnemonic) != nullptr) {
      known += count;
    } else {
      missing += mnemonic + " ";
    }
  }
  ASSERT_GT(all, 200000);
  EXPECT_EQ(missing, "") << known / all;
}

TEST(Census, ThePtxOfAllProgramsOfTheTestsLoads) {
  std::set<opcode> used;
  unsigned texts = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(std::filesystem::path(HPE_PTX_PROGRAMS).parent_path())) {
    if (entry.path().extension() != ".ptx") continue;
    ++texts;
    std::unique_ptr<program> p;
    ASSERT_NO_THROW(p = parse({read_file(entry.path().string())})) << entry.path();
    for (const auto& f : p->functions)
      for (const instruction& i : f->code) used.insert(i.op);
  }
  EXPECT_EQ(texts, 34U);
  EXPECT_GT(used.size(), 60U);
}

TEST(Census, AllKernelsOfTheProgramsHereBecomeNativeCode) {
  if (!has_compiler) GTEST_SKIP() << "built without LLVM: there is no native code";
  unsigned kernels = 0;
  for (const auto& entry : std::filesystem::directory_iterator(HPE_PTX_PROGRAMS)) {
    if (entry.path().extension() != ".ptx") continue;
    const kernel_runner runner({read_file(entry.path().string())}, engine_kind::compiler);
    for (const auto& f : runner.program().functions) {
      if (!f->is_kernel) continue;
      ++kernels;
      EXPECT_TRUE(runner.is_compiled(f->name)) << entry.path() << ": " << f->name;
    }
  }
  EXPECT_GT(kernels, 40U);
}

}  // namespace
}  // namespace hpe::ptx::test
