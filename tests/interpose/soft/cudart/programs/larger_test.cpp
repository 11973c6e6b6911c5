// hpe run --oversubscribe on soft devices: launches that use three times the device's memory run in parts, and compute
// the same as on a device that has enough memory.

#include <gtest/gtest.h>

#include <string>

#include "tests/evictions.h"
#include "tests/interpose/soft/cudart/programs/soft_run.h"

namespace {

outcome with_little(const std::string& name, int devices = 1, const std::string& options = "",
                    const std::string& variables = "") {
  return shell(variables +
               " HPE_STALL_AFTER=0 HPE_DEVICE_MEMORY=32M " HPE_COMMAND
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

// The program fills three arrays of 32 MiB. Then a triad reads two of them, and overwrites the third.
TEST(Larger, ArraysThatALaunchOverwritesAreNotBroughtIn) {
  const outcome less = with_little("triad", 1, "--profile");
  EXPECT_EQ(exit_status(less), 0) << less.text;
  const double mib = evictions_in(less.text).brought_in;
  EXPECT_GE(mib, 96 + 64) << less.text;
  EXPECT_LE(mib, 96 + 72) << less.text;
}

class UsesHostMemory : public ::testing::TestWithParam<const char*> {};

// Launches that neither fit nor can run in parts access the rest of their data in host memory.
TEST_P(UsesHostMemory, AndComputesTheSame) {
  const outcome enough = soft_run(cuda_program("larger ") + GetParam(), 1);
  ASSERT_EQ(exit_status(enough), 0) << enough.text;
  const outcome less = with_little(GetParam(), 1, "--strict", "HPE_LOG=error");
  EXPECT_EQ(exit_status(less), 0) << less.text;
  EXPECT_EQ(less.text, enough.text);
}

INSTANTIATE_TEST_SUITE_P(Larger, UsesHostMemory, ::testing::Values("steps", "pointers", "mixed", "turns"),
                         [](const auto& each) { return each.param; });

// hpe frees the zero-copy memory of one launch when the next launch needs host memory.
TEST(Larger, HostMemoryOfLaunchesIsLimited) {
  const outcome enough = soft_run(cuda_program("larger ") + "turns", 1);
  ASSERT_EQ(exit_status(enough), 0) << enough.text;
  const outcome less = with_little("turns", 1, "--strict", "HPE_LOG=error HPE_HOST_MEMORY=80M HPE_SPILL=/tmp");
  EXPECT_EQ(exit_status(less), 0) << less.text;
  EXPECT_EQ(less.text, enough.text);
}

TEST(Larger, TellsThatALaunchUsesHostMemory) {
  const outcome told = with_little("mixed");
  EXPECT_EQ(exit_status(told), 0) << told.text;
  const std::string words = "accesses data in host memory, which is slow, because";
  const std::size_t first = told.text.find(words);
  ASSERT_NE(first, std::string::npos) << told.text;
  EXPECT_EQ(told.text.find(words, first + 1), std::string::npos) << told.text;
}

TEST(Larger, ALaunchThatIsRepeatedIsTriedWithDataInHostMemory) {
  const outcome enough = soft_run(cuda_program("larger ") + "repeated", 1);
  ASSERT_EQ(exit_status(enough), 0) << enough.text;
  const std::string tried = "ms in parts, and ";
  for (const std::string devices : {"1", "2"}) {
    for (const std::string zero_copy : {"on", "off"}) {
      const outcome less = shell("HPE_STALL_AFTER=0 HPE_LOG=info HPE_DEVICE_MEMORY=16M HPE_ZERO_COPY=" + zero_copy +
                                 " " HPE_COMMAND " run --cuda soft --oversubscribe --spread --devices soft:" + devices +
                                 " -- " + cuda_program("larger ") + "repeated");
      EXPECT_EQ(exit_status(less), 0) << less.text;
      EXPECT_NE(less.text.find(enough.text), std::string::npos) << less.text << "instead of\n" << enough.text;
      EXPECT_EQ(less.text.find(tried) != std::string::npos, zero_copy == "on") << less.text;
    }
  }
}

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

// No part of the grid has data that fits into device memory, but each device can run a part of the grid.
TEST(Larger, SeveralDevicesAccessDataInHostMemory) {
  const outcome enough = soft_run(cuda_program("larger ") + "steps", 1);
  ASSERT_EQ(exit_status(enough), 0) << enough.text;
  const std::string little = "HPE_STALL_AFTER=0 HPE_LOG=error HPE_DEVICE_MEMORY=16M " HPE_COMMAND
                             " run --cuda soft --oversubscribe --spread --devices soft:2 --strict ";
  const outcome less = shell(little + "-- " + cuda_program("larger ") + "steps");
  EXPECT_EQ(exit_status(less), 0) << less.text;
  EXPECT_EQ(less.text, enough.text);
  const outcome told = shell(little + "--explain -- " + cuda_program("larger ") + "steps");
  EXPECT_NE(told.text.find("on 2 devices, with the data that does not fit in host memory"), std::string::npos)
      << told.text;
}

TEST(Larger, TellsWhyALaunchCannotRunInParts) {
  const outcome steps = with_little("steps", 1, "", "HPE_ZERO_COPY=off");
  EXPECT_NE(steps.text.find("in every part of its grid, however the grid is cut"), std::string::npos) << steps.text;
  EXPECT_NE(steps.text.find("steps: cudaErrorMemoryAllocation"), std::string::npos) << steps.text;
  const outcome pointers = with_little("pointers", 1, "", "HPE_ZERO_COPY=off");
  EXPECT_NE(pointers.text.find("it reads pointers from memory, or makes accesses that hpe cannot analyse"),
            std::string::npos)
      << pointers.text;
  EXPECT_NE(pointers.text.find("pointers: cudaErrorMemoryAllocation"), std::string::npos) << pointers.text;
}

// As on GPUs, there is memory behind each array, in device memory and in host memory.
TEST(Larger, KernelsMayReadALittlePastTheEndOfAnArray) {
  for (const std::string memory : {"", "HPE_DEVICE_MEMORY=16M "}) {
    const outcome told = shell("HPE_STALL_AFTER=0 HPE_LOG=error " + memory +
                               HPE_COMMAND " run --cuda soft --oversubscribe --devices soft:1 -- " +
                               cuda_program("larger ") + "past-the-end");
    EXPECT_EQ(told.text, "past the end: cudaSuccess\nwrong sums: 0\n") << memory;
  }
}

TEST(Larger, RefusedLaunchesAreAnErrorIfWanted) {
  const outcome told = with_little("pointers", 1, "", "HPE_ZERO_COPY=off");
  EXPECT_EQ(exit_status(told), 0) << told.text;
  EXPECT_NE(told.text.find("device work that were refused or failed: 1;"), std::string::npos) << told.text;
  EXPECT_EQ(exit_status(with_little("pointers", 1, "--strict", "HPE_ZERO_COPY=off")), 1);
  EXPECT_EQ(exit_status(with_little("ranges", 1, "--strict")), 0);
}

}  // namespace
