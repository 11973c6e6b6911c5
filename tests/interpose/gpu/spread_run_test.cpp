// hpe run --spread with the driver: a program for one GPU prints the same on the stand-in's two devices as without hpe.

#include <gtest/gtest.h>

#include <string>

#include "tests/shell.h"

namespace {

const std::string run = "HPE_CALIBRATION=off HPE_CUDA_DRIVER=" HPE_TEST_STAND_IN " " HPE_COMMAND " run ";
const std::string program = " -- " HPE_TEST_SPREAD_PROGRAM " ";

// Cuts grids into equal parts, because the planner would leave grids as small as these on one device.
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

// With calibration, other threads analyse kernels and compute plans while the program launches them.
TEST(SpreadRun, PrintsTheSameWhileOtherThreadsAnalyseItsKernels) {
  const std::string parts = "add diffuse gather count weigh capture", other_threads = "HPE_CALIBRATION=on ";
  const std::string launch = run.substr(run.find(' ') + 1);
  const outcome one = shell(launch + program + parts);
  ASSERT_EQ(exit_status(one), 0) << one.text;
  const outcome two = shell(other_threads + launch + "--spread" + program + parts);
  EXPECT_EQ(exit_status(two), 0);
  EXPECT_EQ(two.text, one.text);
}

// The exit handlers of the driver's compiler must not run while a thread of hpe loads code, whichever thread launches
// kernels, and whichever thread ends the process.
TEST(SpreadRun, AProcessEndsAfterTheThreadThatLoadsCode) {
  const std::string launch = "STAND_IN_COMPILE_MS=150 HPE_CALIBRATION=on " + run.substr(run.find(' ') + 1);
  for (const char* const how : {"return-beside", "exit-beside", "exit-in-child", "quick-exit"}) {
    const outcome ended = shell(launch + "--spread" + program + how);
    EXPECT_EQ(exit_status(ended), 0) << how << ": " << ended.text;
    EXPECT_EQ(ended.text, std::string("compiling\n") + (how == std::string("exit-in-child") ? "child 7\n" : "")) << how;
  }
}

TEST(SpreadRun, AProcessThatEndsDuringTheStartOfTheSecondDeviceLoadsNoCode) {
  const std::string launch = "STAND_IN_CONTEXT_MS=2000 HPE_CALIBRATION=on " + run.substr(run.find(' ') + 1);
  const outcome ended = shell(launch + "--spread" + program + "return-beside-context");
  EXPECT_EQ(exit_status(ended), 0) << ended.text;
  EXPECT_EQ(ended.text, "contexts 1\nnothing was compiled\n");
}

// An analysis can take minutes, for example that of a kernel of NCCL.
TEST(SpreadRun, AProcessEndsDuringAnAnalysis) {
  const std::string launch = "HPE_CALIBRATION=on " + run.substr(run.find(' ') + 1);
  const outcome ended = shell("timeout 10 env " + launch + "--spread" + program + "return-tangled");
  EXPECT_EQ(exit_status(ended), 0) << ended.text;
  EXPECT_EQ(ended.text, "launched\n");
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

// The arrays of all parts together need twice the memory of both devices.
TEST(SpreadRun, ArraysMayBeLargerThanAllDevicesTogether) {
  const std::string parts = "add diffuse gather count weigh";
  const outcome one = shell(run + program + parts);
  ASSERT_EQ(exit_status(one), 0) << one.text;
  const outcome two = shell("HPE_SPREAD_CUT=even HPE_DEVICE_MEMORY=32M " + run +
                            "--spread --oversubscribe --explain --profile" + program + parts);
  EXPECT_EQ(exit_status(two), 0) << two.text;
  EXPECT_NE(two.text.find(one.text), std::string::npos) << two.text << "instead of\n" << one.text;
  EXPECT_NE(two.text.find("MiB were evicted"), std::string::npos) << two.text;
  EXPECT_NE(two.text.find("         4          4        2"), std::string::npos) << two.text;
}

// The arrays of one launch need three times the memory of both devices.
TEST(SpreadRun, LaunchesRunInPartsOnAllDevices) {
  const std::string parts = "add diffuse gather";
  const outcome one = shell(run + program + parts);
  ASSERT_EQ(exit_status(one), 0) << one.text;
  const outcome two = shell("HPE_LOG=info HPE_DEVICE_MEMORY=8M " + run + "--spread --oversubscribe" + program + parts);
  EXPECT_EQ(exit_status(two), 0) << two.text;
  EXPECT_NE(two.text.find("runs in 4 parts, one after the other"), std::string::npos) << two.text;
  for (std::size_t at = 0; at < one.text.size();) {
    const std::size_t end = one.text.find('\n', at) + 1;
    EXPECT_NE(two.text.find(one.text.substr(at, end - at)), std::string::npos) << two.text << "instead of\n"
                                                                               << one.text;
    at = end;
  }
}

// If a program repeats a launch, hpe compares parts of the grid with data in host memory. Atomic operations of several
// devices on host memory are not atomic on the stand-in's devices.
TEST(SpreadRun, AllDevicesRunALaunchWithDataInHostMemoryUnlessItHasAtomics) {
  const std::string parts = "diffuse-often count-often";
  const outcome one = shell(run + program + parts);
  ASSERT_EQ(exit_status(one), 0) << one.text;
  const std::string little = "HPE_DEVICE_MEMORY=8M " + run + "--spread --oversubscribe";
  const outcome told = shell("HPE_LOG=info " + little + program + parts);
  EXPECT_NE(told.text.find("ms in parts, and "), std::string::npos) << told.text;
  EXPECT_NE(told.text.find("kernel diffuse runs on 2 GPUs with data in host memory"), std::string::npos) << told.text;
  EXPECT_EQ(told.text.find("kernel count runs on 2 GPUs"), std::string::npos) << told.text;
  const outcome two = shell("HPE_LOG=error " + little + program + parts);
  EXPECT_EQ(exit_status(two), 0) << two.text;
  EXPECT_EQ(two.text, one.text);
}

// The total of cuMemGetInfo is the limit of both devices together (64 MiB each), without the bytes that can be in host
// memory.
TEST(SpreadRun, TheLimitsOfAllDevicesAreTold) {
  const outcome told = shell("HPE_DEVICE_MEMORY=64M " + run + "--spread --oversubscribe" + program + "ask");
  EXPECT_NE(told.text.find("memory 384 MiB = 128 MiB, base 1 1, bytes 33554432, device 0, context 1, ipc 801\n"),
            std::string::npos)
      << told.text;
}

TEST(SpreadRun, TellsWhyNothingCanBeSpread) {
  const std::string line = "hpe: hpe run --spread: nothing can be spread, because ";
  const outcome one = shell("STAND_IN_DEVICES=1 " + run + "--spread" + program + "add diffuse");
  EXPECT_EQ(exit_status(one), 0) << one.text;
  EXPECT_NE(one.text.find(line + "the program sees one GPU\n"), std::string::npos) << one.text;
  EXPECT_EQ(one.text.find(line), one.text.rfind(line)) << "told once: " << one.text;
  const outcome apart = shell("STAND_IN_NO_PEERS=1 " + run + "--spread" + program + "add");
  EXPECT_NE(apart.text.find(line + "device 0 and the other GPUs do not reach each other's memory\n"), std::string::npos)
      << apart.text;
  const outcome quiet = shell("HPE_LOG=error STAND_IN_NO_PEERS=1 " + run + "--spread" + program + "add");
  EXPECT_EQ(quiet.text.find("nothing can be spread"), std::string::npos) << quiet.text;
  const outcome no_launch = shell("STAND_IN_DEVICES=1 " + run + "--spread" + program);
  EXPECT_EQ(no_launch.text, "");
}

// The driver needs 0.1 s to make a context, and 0.05 s to end a context.
TEST(SpreadRun, TheSecondDeviceHasAContextOnlyIfTheProgramNeedsTheDevice) {
  const std::string unmeasured = run.substr(run.find(' ') + 1), none = "contexts 0\n", one = "contexts 1\n";
  EXPECT_NE(shell(unmeasured + "--spread" + program + "add contexts").text.find(none), std::string::npos);
  const outcome evicts = shell("HPE_DEVICE_MEMORY=20M " + unmeasured + "--oversubscribe" + program + "add contexts");
  EXPECT_NE(evicts.text.find(none), std::string::npos) << evicts.text;
  EXPECT_EQ(shell(unmeasured + "--spread" + program + "large contexts").text, "large 4095\n" + one);
  EXPECT_NE(spread("add contexts").text.find(one), std::string::npos);
}

TEST(SpreadRun, AProgramRunsOnOneDeviceIfTheOtherIsBusy) {
  const std::string busy = "STAND_IN_BUSY=1 HPE_SPREAD_CUT=even " + run + "--spread" + program;
  const outcome one = shell(run + program + "add gather");
  const outcome two = shell(busy + "add gather");
  EXPECT_EQ(exit_status(two), 0) << two.text;
  EXPECT_NE(two.text.find(one.text), std::string::npos) << two.text << "instead of\n" << one.text;
  const std::string line = "hpe: hpe run --spread: the program runs on one GPU: GPU 1 () cannot be used: ";
  EXPECT_NE(two.text.find(line), std::string::npos) << two.text;
  EXPECT_EQ(two.text.find(line), two.text.rfind(line)) << "told once: " << two.text;
  const outcome told = shell(busy + "ask");
  EXPECT_NE(told.text.find("= 192 MiB, base 1 1"), std::string::npos) << told.text;
  const outcome large = shell(busy + "large");
  EXPECT_NE(large.text.find("bytes do not fit on device 0 alone, and GPU 1 () cannot be used: "), std::string::npos)
      << large.text;
  EXPECT_NE(large.text.find("cuMemAlloc(&made, words * sizeof(float)): 2\n"), std::string::npos) << large.text;
}

TEST(SpreadRun, ShortLaunchesStayOnOneDevice) {
  const outcome told = shell(run + "--spread --explain" + program + "add");
  EXPECT_EQ(exit_status(told), 0) << told.text;
  EXPECT_NE(told.text.find("on one device: short: predicted"), std::string::npos) << told.text;
}

}  // namespace
