// hpe run --oversubscribe on GPUs: a program whose memory is larger than the device's, on the stand-in with 16 MiB for
// hpe, prints what it prints on a device that has room for everything.

#include <gtest/gtest.h>

#include <string>

#include "tests/shell.h"

namespace {

// Without HPE_DEVICE_MEMORY the stand-in's device has room for everything.
const std::string run = "HPE_CUDA_DRIVER=" HPE_TEST_STAND_IN " " HPE_COMMAND " run ";
const std::string little = "HPE_DEVICE_MEMORY=16M " + run + "--oversubscribe ";
const std::string program = " -- " HPE_TEST_LARGER_PROGRAM " ";

TEST(LargerRun, LaunchesGetTheArraysOfTheirArguments) {
  const outcome enough = shell(run + program + "arrays");
  ASSERT_EQ(exit_status(enough), 0) << enough.text;
  const outcome less = shell(little + "--scope args --profile" + program + "arrays");
  EXPECT_EQ(exit_status(less), 0);
  EXPECT_NE(less.text.find(enough.text), std::string::npos) << less.text << "instead of\n" << enough.text;
  EXPECT_NE(less.text.find("MiB made room"), std::string::npos) << less.text;
}

// A part of the program prints the same with little memory.
void expect_same(const std::string& part) {
  const outcome enough = shell(run + program + part);
  ASSERT_EQ(exit_status(enough), 0) << enough.text;
  const outcome less = shell(little + program + part);
  EXPECT_EQ(exit_status(less), 0);
  EXPECT_EQ(less.text, enough.text);
}

TEST(LargerRun, ArraysMayBeLargerThanTheDevice) { expect_same("large"); }

TEST(LargerRun, RowsAndPlanesMayBeLargerThanTheDevice) { expect_same("rows"); }

TEST(LargerRun, GraphsGetTheArraysOfTheirNodes) {
  const outcome enough = shell(run + program + "graphs");
  ASSERT_EQ(exit_status(enough), 0) << enough.text;
  const std::string results = enough.text.substr(0, enough.text.find("all arrays"));
  EXPECT_NE(enough.text.find("all arrays 0\ncaptured 0\n"), std::string::npos) << enough.text;
  const outcome less = shell("HPE_LOG=info " + little + "--scope args" + program + "graphs");
  EXPECT_EQ(exit_status(less), 0) << less.text;
  EXPECT_NE(less.text.find(results), std::string::npos) << less.text << "instead of\n" << results;
  // That launch names all three arrays.
  EXPECT_NE(less.text.find("all arrays 2\ncaptured 0\n"), std::string::npos) << less.text;
  EXPECT_NE(less.text.find("a graph needs the memory of all its nodes at once"), std::string::npos) << less.text;
}

TEST(LargerRun, WithoutScopeALaunchNeedsEverything) {
  const outcome all = shell(little + program + "much");
  EXPECT_EQ(exit_status(all), 0) << all.text;
  EXPECT_NE(all.text.find("launch 2\n"), std::string::npos) << all.text;
  EXPECT_NE(all.text.find("bytes on device 0 at once"), std::string::npos) << all.text;
  const outcome named = shell(little + "--scope args" + program + "much");
  EXPECT_NE(named.text.find("launch 0\n"), std::string::npos) << named.text;
  EXPECT_NE(named.text.find("large 2\n"), std::string::npos) << named.text;
  EXPECT_NE(named.text.find("wait 0\n"), std::string::npos) << named.text;
}

TEST(LargerRun, MemoryLooksLikeTheDrivers) {
  const outcome told = shell(little + "--scope args" + program + "ask");
  EXPECT_EQ(exit_status(told), 0) << told.text;
  for (const std::string line :
       {"memory 0 of 16, base 1, bytes 20971520\n", "type 2, device 0, context 1, host 1\n", "ipc 801\n",
        "ipc of little 0\n", "nowhere 1\n", "freed twice 1\n", "pitch 5120\n", "after the reset 16 of 16\n"})
    EXPECT_NE(told.text.find(line), std::string::npos) << line << "is not in\n" << told.text;
  EXPECT_NE(told.text.find("other processes cannot get it"), std::string::npos) << told.text;
  EXPECT_EQ(told.text.find("is wrong"), std::string::npos) << told.text;
}

TEST(LargerRun, CpuCodeMayTouchTheMemory) {
  const outcome enough = shell(run + program + "touch");
  ASSERT_EQ(exit_status(enough), 0) << enough.text;
  const outcome less = shell(little + "--scope args" + program + "touch");
  EXPECT_EQ(exit_status(less), 0);
  EXPECT_EQ(less.text, enough.text);
}

}  // namespace
