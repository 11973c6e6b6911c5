// The programs in tests/interpose/programs print the same on soft devices as on an H200, on which the same program
// files were run. The CMakeLists.txt there lists the programs that are left out, and the reasons.
#include <gtest/gtest.h>

#include <fstream>
#include <ostream>
#include <sstream>
#include <string>

#include "tests/interpose/soft/cudart/programs/soft_run.h"

namespace {

struct program {
  const char* name;
  const char* arguments;
  const char* recorded;  // the expected output is in the file <recorded>.txt
};

// NOLINTNEXTLINE(readability-identifier-naming): GoogleTest looks for this name
void PrintTo(const program& p, std::ostream* out) { *out << p.name << ' ' << p.arguments; }

class Recorded : public testing::TestWithParam<program> {};

TEST_P(Recorded, PrintsTheOutputRecordedOnAGpu) {
  const program& p = GetParam();
  std::ifstream file(std::string(HPE_TEST_RECORDED "/") + p.recorded + ".txt");
  ASSERT_TRUE(file.good()) << p.recorded;
  std::stringstream wanted;
  wanted << file.rdbuf();
  const outcome o = soft_run(std::string(HPE_TEST_RECORDED_PROGRAMS "/") + p.name + "-shared " + p.arguments);
  EXPECT_EQ(exit_status(o), 0);
  EXPECT_EQ(o.text, wanted.str());
}

INSTANTIATE_TEST_SUITE_P(All, Recorded,
                         testing::Values(program{"children", "", "children"}, program{"conditional", "", "conditional"},
                                         program{"cooperative", "", "cooperative"}, program{"graphs", "", "graphs"},
                                         program{"loading", "", "loading"}, program{"managed", "", "managed"},
                                         program{"mappings", "", "mappings"}, program{"mappings", "touch", "mappings"},
                                         program{"mipmaps", "", "mipmaps"}, program{"peers", "", "peers"},
                                         program{"streams", "", "streams"}, program{"textures", "", "textures"},
                                         program{"threads", "", "threads"}, program{"touch", "", "touch"},
                                         program{"touch", "touch", "touch"}, program{"transpose", "", "transpose"},
                                         program{"vector_add", "", "vector_add"}),
                         [](const testing::TestParamInfo<program>& p) {
                           return std::string(p.param.name) + (*p.param.arguments != 0 ? "_itself" : "");
                         });

// Calls of the driver and of the runtime, including wrong calls. Without `--log silent`, hpe would also print why two
// modules cannot be loaded.
TEST(Driver, CallsPrintTheOutputRecordedOnAGpu) {
  std::ifstream file(HPE_TEST_RECORDED "/driver_calls.txt");
  ASSERT_TRUE(file.good());
  std::stringstream wanted;
  wanted << file.rdbuf();
  const outcome o = soft_run(HPE_TEST_RECORDED_PROGRAMS "/driver_calls-shared", 2, "--log silent");
  EXPECT_EQ(exit_status(o), 0);
  EXPECT_EQ(o.text, wanted.str());
}

TEST(Interpreter, RunsKernelsThatLaunchKernels) {
  std::ifstream file(HPE_TEST_RECORDED "/children.txt");
  std::stringstream wanted;
  wanted << file.rdbuf();
  const outcome o = shell("HPE_PTX_ENGINE=interpreter " HPE_COMMAND
                          " run --cuda soft --devices soft:1 -- " HPE_TEST_RECORDED_PROGRAMS "/children-shared");
  EXPECT_EQ(exit_status(o), 0);
  EXPECT_EQ(o.text, wanted.str());
}

// 20,000 random calls, including wrong calls, have the same digest as on the H200, even if CPU code reads and writes
// device memory directly in place of copies.
TEST(Fuzz, RandomCallsGiveTheResultsRecordedOnAGpu) {
  const std::string fuzz = HPE_TEST_RECORDED_PROGRAMS "/fuzz-shared 20000 5";
  std::ifstream file(HPE_TEST_RECORDED "/fuzz.txt");
  std::string wanted;
  ASSERT_TRUE(std::getline(file, wanted));
  EXPECT_EQ(soft_run(fuzz).text, wanted + '\n');
  EXPECT_EQ(soft_run(fuzz + " touch").text, wanted + '\n');
}

}  // namespace
