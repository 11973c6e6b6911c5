// hpe run --spread on GPUs: a program for one GPU prints the same on the stand-in's two devices as without hpe.

#include <gtest/gtest.h>

#include <string>

#include "tests/shell.h"

namespace {

const std::string run = "HPE_CUDA_DRIVER=" HPE_TEST_STAND_IN " " HPE_COMMAND " run ";
const std::string program = " -- " HPE_TEST_SPREAD_PROGRAM " ";

// Equal parts: such small grids would stay on one device.
outcome spread(const std::string& parts, const std::string& options = "--spread") {
  return shell("HPE_SPREAD_CUT=even " + run + options + program + parts);
}

TEST(SpreadRun, PrintsWhatItPrintsOnOneDevice) {
  const std::string parts = "add diffuse gather count weigh";
  const outcome one = shell(run + program + parts);
  ASSERT_EQ(exit_status(one), 0) << one.text;
  EXPECT_NE(one.text.find("gather "), std::string::npos) << one.text;
  const outcome two = spread(parts);
  EXPECT_EQ(exit_status(two), 0);
  EXPECT_EQ(two.text, one.text);
}

TEST(SpreadRun, TellsWhichKernelsRanWhere) {
  const outcome told = spread("add diffuse", "--spread --explain");
  EXPECT_EQ(exit_status(told), 0) << told.text;
  EXPECT_NE(told.text.find("         1          1        2"), std::string::npos) << told.text;
  EXPECT_NE(told.text.find("         4          4        2"), std::string::npos) << told.text;
}

TEST(SpreadRun, ACaptureGoesOnBesideLaunches) {
  const outcome one = shell(run + program + "capture");
  ASSERT_EQ(exit_status(one), 0) << one.text;
  const outcome two = spread("capture", "--spread --explain");
  EXPECT_EQ(exit_status(two), 0) << two.text;
  EXPECT_NE(two.text.find(one.text), std::string::npos) << two.text;
}

TEST(SpreadRun, KernelsWithConstantsAreSpreadAndThoseWithVariablesAreNot) {
  const outcome told = spread("weigh", "--spread --explain");
  EXPECT_EQ(exit_status(told), 0) << told.text;
  EXPECT_NE(told.text.find("         6          6        2"), std::string::npos) << told.text;
  EXPECT_NE(told.text.find("on one device: it uses variables of its program"), std::string::npos) << told.text;
}

TEST(SpreadRun, AProgramMayAllocateMoreThanOneDeviceHas) {
  EXPECT_EQ(shell(run + "--spread" + program + "large").text, "large 4095\n");
}

TEST(SpreadRun, MemoryLooksLikeThatOfOneDevice) {
  const outcome told = shell(run + "--spread" + program + "ask");
  EXPECT_NE(told.text.find("devices 2, second 0, memory 384 MiB = 384 MiB, base 1 1, bytes 33554432, device 0, "
                           "context 1, ipc 801\n"),
            std::string::npos)
      << told.text;
  EXPECT_NE(told.text.find("other processes cannot get it"), std::string::npos) << told.text;
  EXPECT_NE(told.text.find("freed twice 1\n"), std::string::npos) << told.text;
  const outcome alone = shell(run + program + "ask");
  EXPECT_NE(alone.text.find("devices 2, second 0, memory 192 MiB"), std::string::npos) << alone.text;
}

TEST(SpreadRun, ShortLaunchesStayOnOneDevice) {
  const outcome told = shell(run + "--spread --explain" + program + "add");
  EXPECT_EQ(exit_status(told), 0) << told.text;
  EXPECT_NE(told.text.find("on one device: short: predicted"), std::string::npos) << told.text;
}

}  // namespace
