// Random kernels use an array that is larger than the device's memory, so their launches run in parts, one after the
// other, or access a part of the array in host memory. The results must be the same as those of launches with enough
// memory. The seeds are printed.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <random>
#include <sstream>
#include <string>

#include "tests/shell.h"

namespace {

// The seeds of kernels whose footprints are so small that the launch can be cut. About one seed in ten gives such a
// kernel.
constexpr const char* cut_seeds = " 4 16 39 40 47 48 54 76 80 102";

TEST(CutInTime, RandomKernelsComputeTheSame) {
  std::string program = std::string("HPE_DEVICES=soft:1 " HPE_TEST_CUT_PROGRAM) + cut_seeds;
  std::random_device random;
  for (unsigned n = 0; n < 10; ++n) program += fmt::format(" {}", random() % 1000000);
  fmt::print("{}\n", program);
  const outcome whole = shell(program), cut = shell("HPE_LOG=error HPE_DEVICE_MEMORY=12M " + program);
  ASSERT_EQ(exit_status(whole), 0) << whole.text;
  ASSERT_EQ(exit_status(cut), 0) << cut.text;
  std::istringstream of_whole(whole.text), of_cut(cut.text);
  const std::string mark = " in parts";
  unsigned in_parts = 0, compared = 0;
  for (std::string one, other; std::getline(of_whole, one) && std::getline(of_cut, other);) {
    if (other.find("outside of the array") != std::string::npos) continue;
    if (other.ends_with(mark)) {
      other.resize(other.size() - mark.size());
      ++in_parts;
    }
    EXPECT_EQ(other, one);
    ++compared;
  }
  EXPECT_GE(in_parts, 10U) << cut.text;
  EXPECT_GT(compared, in_parts) << cut.text;
}

}  // namespace
