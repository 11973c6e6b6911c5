// hpe run --oversubscribe on soft devices: launches that use three times the device's memory run in parts, and compute
// the same as on a device that has enough memory.

#include <gtest/gtest.h>

#include <string>

#include "tests/interpose/soft/cudart/programs/soft_run.h"

namespace {

outcome with_little(const std::string& name, int devices = 1, const std::string& options = "") {
  return shell("HPE_STALL_AFTER=0 HPE_DEVICE_MEMORY=32M " HPE_COMMAND
               " run --cuda soft --oversubscribe --devices soft:" +
               std::to_string(devices) + " " + options + " -- " + cuda_program("larger ") + name);
}

class RunsInParts : public ::testing::TestWithParam<const char*> {};

TEST_P(RunsInParts, AndComputesTheSame) {
  const outcome enough = soft_run(cuda_program("larger ") + GetParam(), 1);
  ASSERT_EQ(exit_status(enough), 0) << enough.text;
  const outcome less = with_little(GetParam());
  EXPECT_EQ(exit_status(less), 0) << less.text;
  EXPECT_EQ(less.text, enough.text);
}

INSTANTIATE_TEST_SUITE_P(Larger, RunsInParts,
                         ::testing::Values("triad", "stencil", "product", "reduction", "transpose", "loop", "graph",
                                           "streams", "variables", "ranges"),
                         [](const auto& each) { return each.param; });

TEST(Larger, SeveralDevicesRunEachPart) {
  for (const std::string name : {"triad", "transpose", "reduction"}) {
    const outcome enough = soft_run(cuda_program("larger ") + name, 1);
    ASSERT_EQ(exit_status(enough), 0) << enough.text;
    const outcome less = shell("HPE_STALL_AFTER=0 HPE_DEVICE_MEMORY=16M " HPE_COMMAND
                               " run --cuda soft --oversubscribe --spread --devices soft:2 -- " +
                               cuda_program("larger ") + name);
    EXPECT_EQ(exit_status(less), 0) << less.text;
    EXPECT_EQ(less.text, enough.text);
  }
}

TEST(Larger, TellsWhyALaunchCannotRunInParts) {
  const outcome steps = with_little("steps");
  EXPECT_NE(steps.text.find("in every part of its grid, however the grid is cut"), std::string::npos) << steps.text;
  EXPECT_NE(steps.text.find("steps: cudaErrorMemoryAllocation"), std::string::npos) << steps.text;
  const outcome pointers = with_little("pointers");
  EXPECT_NE(pointers.text.find("it reads pointers from memory, or makes accesses that hpe cannot analyse"),
            std::string::npos)
      << pointers.text;
  EXPECT_NE(pointers.text.find("pointers: cudaErrorMemoryAllocation"), std::string::npos) << pointers.text;
}

TEST(Larger, RefusedLaunchesAreAnErrorIfWanted) {
  const outcome told = with_little("pointers");
  EXPECT_EQ(exit_status(told), 0) << told.text;
  EXPECT_NE(told.text.find("device work that were refused or failed: 1;"), std::string::npos) << told.text;
  EXPECT_EQ(exit_status(with_little("pointers", 1, "--strict")), 1);
  EXPECT_EQ(exit_status(with_little("ranges", 1, "--strict")), 0);
}

}  // namespace
