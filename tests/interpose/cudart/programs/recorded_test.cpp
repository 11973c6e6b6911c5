// The programs of tests/interpose/programs print here what they printed on an H200: the same files, on soft devices.
// Which of them are not here, and why, is told in the CMakeLists.txt there.
#include <gtest/gtest.h>

#include <fstream>
#include <ostream>
#include <sstream>
#include <string>

#include "tests/interpose/cudart/programs/soft_run.h"

namespace {

struct program {
  const char* name;
  const char* arguments;
  const char* recorded;           // the file is <recorded>.txt
  const char* refused = nullptr;  // the call that soft devices refuse; the program prints so then, and ends
};

void PrintTo(const program& p, std::ostream* out) { *out << p.name << ' ' << p.arguments; }

class Recorded : public testing::TestWithParam<program> {};

TEST_P(Recorded, PrintsWhatItDidOnAGpu) {
  const program& p = GetParam();
  std::ifstream file(std::string(HPE_TEST_RECORDED "/") + p.recorded + ".txt");
  ASSERT_TRUE(file.good()) << p.recorded;
  std::stringstream wanted;
  wanted << file.rdbuf();
  const outcome o = soft_run(std::string(HPE_TEST_RECORDED_PROGRAMS "/") + p.name + "-shared " + p.arguments);
  if (p.refused == nullptr) {
    EXPECT_EQ(exit_status(o), 0);
    EXPECT_EQ(o.text, wanted.str());
    return;
  }
  EXPECT_EQ(exit_status(o), 1);
  const std::size_t last = o.text.rfind('\n', o.text.size() - 2) + 1;
  EXPECT_TRUE(last > 0 && wanted.str().starts_with(o.text.substr(0, last))) << o.text;
  EXPECT_NE(o.text.find(p.refused, last), std::string::npos) << o.text;
  EXPECT_TRUE(o.text.ends_with(": operation not supported\n")) << o.text;
}

INSTANTIATE_TEST_SUITE_P(All, Recorded,
                         testing::Values(program{"cooperative", "", "cooperative", "cudaLaunchKernelEx"},
                                         program{"graphs", "", "graphs"}, program{"managed", "", "managed"},
                                         program{"peers", "", "peers"}, program{"streams", "", "streams"},
                                         program{"threads", "", "threads"}, program{"touch", "", "touch"},
                                         program{"touch", "touch", "touch"}, program{"transpose", "", "transpose"},
                                         program{"vector_add", "", "vector_add"}),
                         [](const testing::TestParamInfo<program>& p) {
                           return std::string(p.param.name) + (*p.param.arguments != 0 ? "_itself" : "");
                         });

TEST(Fuzz, CpuCodeThatTouchesAndCopiesAgree) {
  const std::string fuzz = HPE_TEST_RECORDED_PROGRAMS "/fuzz-shared 5000 2";
  const outcome copies = soft_run(fuzz);
  EXPECT_EQ(exit_status(copies), 0) << copies.text;
  EXPECT_EQ(copies.text.size(), 17U) << copies.text;  // sixteen digits
  EXPECT_EQ(soft_run(fuzz + " touch").text, copies.text);
}

}  // namespace
