// The output of kernels appears on the program's standard output. It must be complete and in order, also with respect
// to the program's own output.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

namespace {

std::vector<std::string> lines_of(const std::string& how) {
  FILE* const program = ::popen((std::string(PTX_LAUNCH_PRINTER) + " " + how).c_str(), "r");
  EXPECT_NE(program, nullptr);
  std::string text;
  std::array<char, 4096> piece{};
  for (std::size_t n = 0; (n = std::fread(piece.data(), 1, piece.size(), program)) > 0;) text.append(piece.data(), n);
  EXPECT_EQ(::pclose(program), 0) << text.substr(0, 1000);
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// Expects `count` lines, each of which begins with its number.
void expect_in_order(const std::vector<std::string>& lines, std::size_t count) {
  ASSERT_EQ(lines.size(), count);
  for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(std::stoul(lines[i]), i) << lines[i];
}

TEST(Output, ComesAtTheEndOfTheProgram) { expect_in_order(lines_of("exit"), 10); }
TEST(Output, IsOrderedWithTheProgramsOwn) { expect_in_order(lines_of("turns"), 20); }
TEST(Output, ComesWhenItsWorkIsWaitedFor) { expect_in_order(lines_of("work"), 20); }
TEST(Output, OfFailedLaunchesIsKept) { expect_in_order(lines_of("failing"), 2); }

// The kernels print 16 MB, more than CUDA's printf buffer on a device holds by default.
TEST(Output, HasNoLimit) {
  std::vector<std::string> lines = lines_of("much");
  ASSERT_EQ(lines.size(), 200000U);
  std::sort(lines.begin(), lines.end());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    ASSERT_EQ(lines[i].substr(0, 5), "line ");
    ASSERT_EQ(std::stoul(lines[i].substr(5, 8)), i / 4);
  }
}

}  // namespace
