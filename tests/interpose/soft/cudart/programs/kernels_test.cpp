// Whole CUDA programs that check their results themselves.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "tests/interpose/soft/cudart/programs/soft_run.h"

namespace {

class Kernels : public testing::TestWithParam<const char*> {};

TEST_P(Kernels, AreRight) {
  const outcome o = soft_run(cuda_program("kernels ") + GetParam());
  EXPECT_EQ(exit_status(o), 0) << o.text;
  EXPECT_NE(o.text.find(std::string(GetParam()) + ": right"), std::string::npos) << o.text;
}

INSTANTIATE_TEST_SUITE_P(All, Kernels,
                         testing::Values("bitonic", "groups", "heap", "histogram", "indirect", "matmul", "recursion",
                                         "scan", "stencil"),
                         [](const testing::TestParamInfo<const char*>& kernel) { return std::string(kernel.param); });

TEST(Kernels, PrintTheExpectedOutput) {
  const outcome o = soft_run(cuda_program("kernels printing"));
  ASSERT_EQ(exit_status(o), 0) << o.text;
  std::vector<std::string> printed;
  std::vector<std::string> wanted;
  std::istringstream lines(o.text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("hpe ")) printed.push_back(line);
    if (line.starts_with("wanted: ")) wanted.push_back(line.substr(8));
  }
  std::sort(printed.begin(), printed.end());  // the order in which threads print is undefined
  std::sort(wanted.begin(), wanted.end());
  ASSERT_EQ(wanted.size(), 4U) << o.text;
  ASSERT_EQ(printed.size(), 4U) << o.text;
  for (std::size_t i = 0; i < wanted.size(); ++i)  // each line ends with a null pointer and a percent sign
    EXPECT_TRUE(printed[i].starts_with(wanted[i] + ' ') && printed[i].ends_with('%')) << o.text;
}

class Language : public testing::TestWithParam<const char*> {};

TEST_P(Language, IsRight) {
  const outcome o = soft_run(cuda_program("language ") + GetParam());
  EXPECT_EQ(exit_status(o), 0);
  EXPECT_EQ(o.text, std::string(GetParam()) + ": right\n");
}

INSTANTIATE_TEST_SUITE_P(All, Language,
                         testing::Values("barriers", "fences", "groups", "matrices", "objects", "pipelines"),
                         [](const testing::TestParamInfo<const char*>& part) { return std::string(part.param); });

class Odds : public testing::TestWithParam<const char*> {};

TEST_P(Odds, AreRight) {
  const outcome o = soft_run(cuda_program("odds ") + GetParam());
  EXPECT_EQ(exit_status(o), 0) << o.text;
  EXPECT_NE(o.text.find(std::string(GetParam()) + ": right\n"), std::string::npos) << o.text;
}

INSTANTIATE_TEST_SUITE_P(All, Odds,
                         testing::Values("abrupt", "between_processes", "children", "host_functions", "mapped", "peers",
                                         "pools", "printf", "textures", "threads", "timing"),
                         [](const testing::TestParamInfo<const char*>& name) { return std::string(name.param); });

TEST(Parts, OfAProgramShareDeviceCode) {
  const outcome o = soft_run(cuda_program("parts"));
  EXPECT_TRUE(o.text.ends_with(": right\n")) << o.text;
}

TEST(Squares, PrintTheOutputOfTheDocumentation) {
  EXPECT_EQ(soft_run(cuda_program("squares 1")).text,
            "hpe soft device 0: no error\n31 * 31 = 961\nhpe soft device 1: no error\n31 * 31 = 961\n");
  const outcome far = soft_run(cuda_program("squares 100000000"));
  EXPECT_NE(far.text.find("block (0, 0, 0) touched an address that does not belong to the device (0x"),
            std::string::npos)
      << far.text;
  EXPECT_NE(far.text.find("hpe soft device 0: an illegal memory access was encountered\n"), std::string::npos)
      << far.text;
}

// Also runs with --scope args, with which hpe assumes that kernels only use the memory to which their arguments point.
TEST(HostAccess, OfDevicePointersByCpuCodeAndFiles) {
  const std::string file = "/tmp/hpe-host-access-" + std::to_string(::getpid());
  for (const char* const scope : {"all", "args"}) {
    const outcome o = soft_run(cuda_program("host_access ") + file, 2, std::string("--scope ") + scope);
    std::filesystem::remove(file);
    EXPECT_EQ(exit_status(o), 0) << o.text;
    EXPECT_NE(o.text.find("device 1\n"), std::string::npos) << o.text;
    EXPECT_TRUE(o.text.ends_with("host access: right\n")) << o.text;
  }
}

TEST(Profile, NamesThePlacesOfTheProgram) {
  const outcome o = soft_run(cuda_program("kernels scan"), 1, "--profile");
  EXPECT_EQ(exit_status(o), 0) << o.text;
  const std::size_t places = o.text.find("where the time went");
  ASSERT_NE(places, std::string::npos) << o.text;
  const std::string told = o.text.substr(places);
  EXPECT_NE(told.find("from devices, staged by hpe: "), std::string::npos) << o.text;
  EXPECT_NE(told.find("/kernels"), std::string::npos) << o.text;
  EXPECT_EQ(told.find("somewhere"), std::string::npos) << o.text;  // "somewhere" would be a thread of a stream
}

}  // namespace
