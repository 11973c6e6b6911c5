// hpe run --spread: programs for one GPU print the same on several soft devices as on one.

#include <gtest/gtest.h>

#include <string>

#include "tests/interpose/soft/cudart/programs/soft_run.h"

namespace {

// Cuts grids into equal parts, because the planner would leave grids as small as these on one device.
outcome spread_run(const std::string& program, int devices, const std::string& options = "--spread") {
  return shell("HPE_SPREAD_CUT=even " HPE_COMMAND " run --cuda soft --devices soft:" + std::to_string(devices) + " " +
               options + " -- " + program);
}

/// Removes a line from the text, wherever it is.
std::string without(const std::string& line, std::string text) {
  if (const auto at = text.find(line); at != std::string::npos) text.erase(at, line.size());
  return text;
}

TEST(Spread, SamplesPrintTheSameOnSeveralDevices) {
  const outcome one = soft_run(cuda_program("samples"), 1);
  ASSERT_EQ(one.status, 0) << one.text;
  EXPECT_EQ(one.text.find("1 devices\n"), 0U) << one.text;
  for (int devices = 1; devices <= 4; ++devices) {
    const outcome spread = spread_run(cuda_program("samples"), devices);
    EXPECT_EQ(spread.status, 0) << devices << " devices: " << spread.text;
    const std::string line =
        devices == 1 ? "hpe: hpe run --spread: nothing can be spread, because the program sees one device\n" : "";
    EXPECT_EQ(without(line, spread.text), one.text) << devices << " devices";
    EXPECT_EQ(spread.text.find("nothing can be spread") == std::string::npos, line.empty()) << spread.text;
  }
}

TEST(Spread, TellsThatDevicesDoNotReachEachOther) {
  const std::string spread = " run --cuda soft --devices soft:2x1 --spread -- ";
  const outcome told = shell(HPE_COMMAND + spread + cuda_program("samples"));
  EXPECT_NE(told.text.find("nothing can be spread, because the devices do not reach each other's memory\n"),
            std::string::npos)
      << told.text;
  const outcome quiet = shell("HPE_LOG=error " HPE_COMMAND + spread + cuda_program("samples"));
  EXPECT_EQ(quiet.text.find("nothing can be spread"), std::string::npos) << quiet.text;
  const outcome no_launch = shell(HPE_COMMAND + spread + "/bin/true");
  EXPECT_EQ(no_launch.text, "");
}

TEST(Spread, ProgramsOfACoursePrintTheSameOnSeveralDevices) {
  const outcome one = soft_run(cuda_program("course"), 1);
  ASSERT_EQ(one.status, 0) << one.text;
  EXPECT_NE(one.text.find("levels\n"), std::string::npos) << one.text;
  for (const int devices : {2, 4}) {
    const outcome spread = spread_run(cuda_program("course"), devices);
    EXPECT_EQ(spread.status, 0) << devices << " devices: " << spread.text;
    EXPECT_EQ(spread.text, one.text) << devices << " devices";
  }
}

TEST(Spread, PoolsHaveTheMemoryOfAllDevices) {
  const std::string small = "HPE_SOFT_MEMORY=80M " HPE_COMMAND " run --cuda soft --devices soft:";
  const outcome one = shell(small + "1 -- " + cuda_program("course pool"));
  EXPECT_NE(one.text.find("out of memory"), std::string::npos) << one.text;
  const outcome two = shell(small + "2 --spread -- " + cuda_program("course pool"));
  EXPECT_EQ(two.status, 0) << two.text;
  EXPECT_EQ(two.text.find("pool "), 0U) << two.text;
}

// A transpose reads columns from all parts of the matrix, so half of its reads are remote. If links are slow, the
// transpose stays on one device.
TEST(Spread, SlowLinksKeepATransposeOnOneDevice) {
  const std::string run =
      HPE_COMMAND " run --cuda soft --devices soft:2 --spread --explain -- " + cuda_program("course transpose");
  const outcome slow = shell("HPE_SOFT_PEER_LINK=10M:5 " + run);
  EXPECT_EQ(slow.status, 0) << slow.text;
  EXPECT_NE(slow.text.find("         1          0        1"), std::string::npos) << slow.text;
}

TEST(Spread, PredictedTimesChangeNoResult) {
  const outcome one = soft_run(cuda_program("samples"), 1);
  const outcome spread = soft_run(cuda_program("samples"), 3, "--spread");
  EXPECT_EQ(spread.status, 0) << spread.text;
  EXPECT_EQ(spread.text, one.text);
}

TEST(Spread, ExplainsAtTheEndWhichKernelsRanWhere) {
  const outcome told = spread_run(cuda_program("samples") + " heat", 2, "--spread --explain");
  EXPECT_EQ(told.status, 0);
  EXPECT_NE(told.text.find("kernels over several devices"), std::string::npos) << told.text;
  EXPECT_NE(told.text.find("         6          6        2"), std::string::npos) << told.text;
  EXPECT_NE(told.text.find("diffuse(float const*, float*, int, int)"), std::string::npos) << told.text;
}

TEST(Spread, KernelsThatMayNotBeSpreadStayOnOneDevice) {
  for (const char* const part : {"groups", "fences", "objects"}) {
    const outcome spread = spread_run(cuda_program("language ") + part, 3);
    EXPECT_EQ(spread.text, std::string(part) + ": right\n");
  }
}

TEST(Spread, AFaultOfAPartIsTheProgramsError) {
  const outcome spread = spread_run(cuda_program("faults bounds"), 2);
  EXPECT_EQ(exit_status(spread), 0) << spread.text;
  EXPECT_NE(spread.text.find("cudaErrorIllegalAddress"), std::string::npos) << spread.text;
}

TEST(Spread, OtherValuesOfTheOptionAreRefused) {
  const outcome refused = shell("HPE_SPREAD=perhaps " HPE_COMMAND " run --cuda soft -- " + cuda_program("samples"));
  EXPECT_NE(refused.status, 0);
  EXPECT_NE(refused.text.find("HPE_SPREAD=\"perhaps\" is none of on, off, 1 and 0"), std::string::npos) << refused.text;
}

}  // namespace
