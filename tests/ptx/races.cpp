// Races in shared memory. All other tests of interpreted kernels also test that no false race is reported
// (kernel_runner).
#include <algorithm>
#include <fstream>
#include <numeric>

#include "tests/ptx/programs_fixture.h"

namespace hpe::ptx::test {
namespace {

// Returns "races.cu:" and the number of the n-th line of races.cu that contains these words.
std::string line_with(const std::string& words, int n = 1) {
  std::ifstream file(HPE_PTX_SOURCES "/races.cu");
  std::string line;
  for (int number = 1; std::getline(file, line); ++number)
    if (line.find(words) != std::string::npos && --n == 0) return "races.cu:" + std::to_string(number);
  return "no line with " + words;
}

class Races : public ::testing::Test {
 protected:
  /// Runs a kernel with two blocks, and returns the races that hpe reports.
  std::vector<std::string> run(const std::string& kernel, bool right, unsigned threads = 64, unsigned shared = 0) {
    std::vector<int> in(64);
    std::iota(in.begin(), in.end(), 1);
    const auto stopped = runner_.launch(kernel, {{2}, {threads}, shared}, runner_.upload(in),
                                        runner_.upload(std::vector<int>(64)), right);
    EXPECT_FALSE(stopped.has_value()) << stopped->message();
    return runner_.races_of(kernel);
  }
  void SetUp() override { runner_.allow_races(); }

  kernel_runner runner_{{read_file(std::string(HPE_PTX_PROGRAMS) + "/races.ptx")}, engine_kind::interpreter};
};

void expect_words(const std::string& text, const std::vector<std::string>& words) {
  for (const std::string& w : words) EXPECT_NE(text.find(w), std::string::npos) << "no \"" << w << "\" in:\n" << text;
}

TEST_F(Races, OfReadersAndWriters) {
  EXPECT_TRUE(run("neighbours", true).empty());
  const auto told = run("neighbours", false);
  ASSERT_EQ(told.size(), 3U) << ::testing::PrintToString(told);
  const std::string first = line_with("tile[t] = in[t]"), read = line_with("next = tile"),
                    last = line_with("tile[t] = next");
  expect_words(told[0],
               {"kernel neighbours: race in shared memory: thread (1, 0, 0) of block (0, 0, 0) writes offset 4 "
                "(tile + 4) at ",
                first + ", which thread (0, 0, 0) read at ", read + ", with no barrier between; "});
  expect_words(told[1], {" writes ", last, " read at ", read});
  expect_words(told[2], {"thread (63, 0, 0) of block (0, 0, 0) reads offset 0 (tile) at ", read, " wrote at ", last});
  EXPECT_TRUE(run("neighbours", false).empty()) << "each pair of lines is reported only once";
}

TEST_F(Races, OfWarpsWithoutBarriers) {
  EXPECT_TRUE(run("warp_sum", true, 32, 128).empty());
  const auto told = run("warp_sum", false, 32, 128);
  ASSERT_FALSE(told.empty());
  for (const std::string& t : told) {
    EXPECT_TRUE(t.find("(sums") != std::string::npos) << t;
    expect_words(t, {"races.cu:"});
  }
}

TEST_F(Races, OfAtomicOperationsAndPlainOnes) {
  EXPECT_TRUE(run("count_even", true).empty());
  const auto told = run("count_even", false);
  ASSERT_FALSE(told.empty());
  const std::string all = std::accumulate(told.begin(), told.end(), std::string());
  expect_words(all, {"(count)", " atomically ", line_with("*out = count + some")});
  EXPECT_EQ(all.find("writes"), std::string::npos) << all;
}

TEST_F(Races, OfAsynchronousCopies) {
  EXPECT_TRUE(run("copied", true).empty());
  const auto told = run("copied", false);
  ASSERT_EQ(told.size(), 1U) << ::testing::PrintToString(told);
  expect_words(told[0],
               {"(first", " copied to asynchronously at ", "with no wait for the copy followed by a barrier between"});
}

TEST_F(Races, AreNoneAfterNamedBarriersLocksAndFlags) {
  EXPECT_TRUE(run("handed_over", true).empty());
  const auto told = run("handed_over", false);
  ASSERT_EQ(told.size(), 1U) << ::testing::PrintToString(told);
  expect_words(told[0], {"(box", line_with("out[t] = box"), line_with("box[t] = in[t]")});
}

}  // namespace
}  // namespace hpe::ptx::test
