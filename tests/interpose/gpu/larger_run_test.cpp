// hpe run --oversubscribe with the driver: a program that uses more memory than hpe has on the stand-in's device (16
// MiB) prints the same as on a device that has enough memory.

#include <gtest/gtest.h>

#include <string>

#include "tests/evictions.h"
#include "tests/shell.h"

namespace {

// Without HPE_DEVICE_MEMORY, the stand-in's device has enough memory for the program.
const std::string run = "HPE_CUDA_DRIVER=" HPE_TEST_STAND_IN " " HPE_COMMAND " run ";
const std::string little = "HPE_DEVICE_MEMORY=16M " + run + "--oversubscribe ";
const std::string program = " -- " HPE_TEST_LARGER_PROGRAM " ";
const std::string no_zero_copy = "HPE_ZERO_COPY=off ";

TEST(LargerRun, LaunchesGetTheArraysOfTheirArguments) {
  const outcome enough = shell(run + program + "arrays");
  ASSERT_EQ(exit_status(enough), 0) << enough.text;
  const outcome less = shell(little + "--scope args --profile" + program + "arrays");
  EXPECT_EQ(exit_status(less), 0);
  EXPECT_NE(less.text.find(enough.text), std::string::npos) << less.text << "instead of\n" << enough.text;
  EXPECT_NE(less.text.find("MiB were evicted"), std::string::npos) << less.text;
}

// Expects that a part of the program prints the same with little memory as with enough memory.
void expect_same(const std::string& part) {
  const outcome enough = shell(run + program + part);
  ASSERT_EQ(exit_status(enough), 0) << enough.text;
  const outcome less = shell(little + program + part);
  EXPECT_EQ(exit_status(less), 0);
  EXPECT_EQ(less.text, enough.text);
}

// The PTX shows that the kernel only reads three of the four arrays. At the end, hpe evicts the array that the kernel
// writes.
TEST(LargerRun, ArraysThatKernelsOnlyReadAreDroppedWithoutACopy) {
  const outcome enough = shell(run + program + "reads");
  ASSERT_EQ(exit_status(enough), 0) << enough.text;
  for (const std::string scope : {"", "--scope args "}) {
    const outcome less = shell("HPE_LOG=error " + little + scope + "--profile" + program + "reads");
    EXPECT_EQ(exit_status(less), 0);
    EXPECT_NE(less.text.find(enough.text), std::string::npos) << less.text << "instead of\n" << enough.text;
    const evictions told = evictions_in(less.text);
    EXPECT_GE(told.all, 9 * 6) << less.text;
    EXPECT_LE(told.copied, 3 * 6) << less.text;
  }
}

// hpe does not know that the kernel only reads three of the four arrays, but their fingerprints show this. When hpe
// first evicts an array, it has no fingerprint of the array.
TEST(LargerRun, ArraysThatUnknownKernelsOnlyReadAreDroppedWithoutACopy) {
  const outcome enough = shell(run + program + "reads-unknown");
  ASSERT_EQ(exit_status(enough), 0) << enough.text;
  for (const std::string scope : {"", "--scope args "}) {
    const outcome less = shell("HPE_LOG=error " + little + scope + "--profile" + program + "reads-unknown");
    EXPECT_EQ(exit_status(less), 0);
    EXPECT_NE(less.text.find(enough.text), std::string::npos) << less.text << "instead of\n" << enough.text;
    const evictions told = evictions_in(less.text);
    EXPECT_GE(told.all, 9 * 6) << less.text;
    EXPECT_LE(told.copied, 5 * 6) << less.text;
  }
}

// Programs that count from 1 pass such addresses. Without --scope args, hpe then assumes that a kernel may use any
// memory.
TEST(LargerRun, PointersMayLeadToTheGapBeforeAnArray) {
  // Without --oversubscribe, kernels of the stand-in could wait for pages that hpe opens only after the kernel.
  const outcome enough = shell(run + "--oversubscribe" + program + "reads-behind");
  ASSERT_EQ(exit_status(enough), 0) << enough.text;
  for (const std::string more : {"", "--spread "}) {
    const outcome less = shell("HPE_LOG=error " + little + more + program + "reads-behind");
    EXPECT_EQ(exit_status(less), 0) << more << less.text;
    EXPECT_EQ(less.text, enough.text) << more;
  }
}

// hpe evicts arrays to which pointers in memory lead; kernels then access them in host memory.
TEST(LargerRun, KernelsMayFollowPointersInMemory) {
  // Without --oversubscribe, CPU code cannot read memory that kernels of the stand-in use without its being a
  // parameter.
  const outcome enough = shell("HPE_DEVICE_MEMORY=96M " + run + "--oversubscribe" + program + "tables");
  ASSERT_EQ(exit_status(enough), 0) << enough.text;
  const outcome by_default = shell(little + program + "tables");
  EXPECT_EQ(exit_status(by_default), 0);
  EXPECT_EQ(by_default.text, enough.text);
  const outcome all = shell("HPE_LOG=error " + little + "--scope all" + program + "tables");
  EXPECT_EQ(all.text, enough.text);
  // Without zero-copy memory, hpe refuses launches that may use all memory.
  const outcome none = shell(no_zero_copy + little + program + "tables");
  EXPECT_EQ(exit_status(none), 9) << none.text;
  EXPECT_NE(none.text.find("it may use all allocations"), std::string::npos) << none.text;
  const outcome refused = shell("STAND_IN_NO_HOST_MEMORY=1 " + little + program + "tables");
  EXPECT_EQ(exit_status(refused), 9) << refused.text;
  EXPECT_NE(refused.text.find("the CUDA driver maps no host memory"), std::string::npos) << refused.text;
}

// By default, kernels whose accesses hpe does not know get the arrays of their parameters, as with --scope args.
TEST(LargerRun, UnknownKernelsGetTheArraysOfTheirParameters) {
  const outcome enough = shell(run + program + "steps");
  ASSERT_EQ(exit_status(enough), 0) << enough.text;
  double moved[2];
  for (const int by_default : {0, 1}) {
    const outcome less =
        shell("HPE_LOG=error " + little + (by_default ? "" : "--scope args ") + "--profile" + program + "steps");
    EXPECT_EQ(exit_status(less), 0) << less.text;
    EXPECT_NE(less.text.find(enough.text), std::string::npos) << less.text << "instead of\n" << enough.text;
    moved[by_default] = evictions_in(less.text).brought_in;
  }
  EXPECT_GT(moved[1], 0);
  EXPECT_LE(moved[1], 1.05 * moved[0]);
}

// The launches use the first third of each of four arrays. If hpe brought in whole arrays, each of the 24 launches
// would need an array of 6 MiB that is not in device memory.
TEST(LargerRun, RepeatedLaunchesGetOnlyTheBytesThatTheyCanTouch) {
  const outcome enough = shell(run + program + "thirds");
  ASSERT_EQ(exit_status(enough), 0) << enough.text;
  const outcome less = shell("HPE_LOG=error " + little + "--profile" + program + "thirds");
  EXPECT_EQ(exit_status(less), 0) << less.text;
  EXPECT_NE(less.text.find(enough.text), std::string::npos) << less.text << "instead of\n" << enough.text;
  EXPECT_LE(evictions_in(less.text).brought_in, 24 * 6 / 2);
}

// hpe does not analyse the kernel of the first launch, because all data fits at that time. hpe moves data to zero-copy
// memory only for kernels that it does not know.
TEST(LargerRun, LaunchesBeforeAnyDataHasLeftDoNotKeepAllDataMapped) {
  const outcome less = shell("HPE_LOG=debug " + little + "--profile" + program + "end much");
  EXPECT_EQ(exit_status(less), 0) << less.text;
  EXPECT_NE(less.text.find("launch 0\nlarge 0\nwait 0\n"), std::string::npos) << less.text;
  EXPECT_GE(evictions_in(less.text).all, 8) << less.text;
  EXPECT_EQ(less.text.find("moved in for work that waited"), std::string::npos) << less.text;
}

// A third of the data does not fit. Without prediction, each launch that needs an array would stop the device's work,
// and each period would bring in all 96 arrays (2 MiB).
TEST(LargerRun, FewStopsMoveTheDataOfAPeriod) {
  const outcome enough = shell("HPE_DEVICE_MEMORY=192M " + run + "--oversubscribe" + program + "periods");
  ASSERT_EQ(exit_status(enough), 0) << enough.text;
  const outcome less =
      shell("HPE_LOG=debug HPE_DEVICE_MEMORY=128M " + run + "--oversubscribe --profile" + program + "periods");
  EXPECT_EQ(exit_status(less), 0) << less.text;
  EXPECT_NE(less.text.find(enough.text), std::string::npos) << less.text << "instead of\n" << enough.text;
  unsigned stops = 0;
  for (std::size_t at = 0; (at = less.text.find(" moved in for work that waited", at)) != std::string::npos; ++at)
    ++stops;
  EXPECT_GE(stops, 1U);
  EXPECT_LE(stops, 10 * 96 / 4);
  EXPECT_LE(evictions_in(less.text).brought_in, 192 + 10 * 0.7 * 192);
}

TEST(LargerRun, ArraysMayBeLargerThanTheDevice) { expect_same("large"); }

TEST(LargerRun, AProgramMayCallTheDriverAsItExits) {
  const outcome alone = shell(run + program + "end");
  EXPECT_EQ(exit_status(alone), 0) << alone.text;
  EXPECT_NE(alone.text.find("released at the end"), std::string::npos) << alone.text;
  for (const char* const options : {"--oversubscribe", "--spread"}) {
    const outcome it = shell(run + options + program + "end");
    EXPECT_EQ(exit_status(it), 0) << options << it.text;
    EXPECT_EQ(it.text, alone.text) << options;
  }
}

TEST(LargerRun, RowsAndPlanesMayBeLargerThanTheDevice) { expect_same("rows"); }

TEST(LargerRun, GraphsGetTheArraysOfTheirNodes) {
  const outcome enough = shell(run + program + "graphs");
  ASSERT_EQ(exit_status(enough), 0) << enough.text;
  const std::string results = enough.text.substr(0, enough.text.find("all arrays"));
  EXPECT_NE(enough.text.find("all arrays 0\ncaptured 0\n"), std::string::npos) << enough.text;
  // The launches that do not fit access the rest of their data in host memory.
  const outcome all = shell("HPE_LOG=error " + little + "--scope args --strict" + program + "graphs");
  EXPECT_EQ(exit_status(all), 0) << all.text;
  EXPECT_EQ(all.text, enough.text);
  const outcome less = shell(no_zero_copy + "HPE_LOG=info " + little + "--scope args" + program + "graphs");
  EXPECT_EQ(exit_status(less), 0) << less.text;
  EXPECT_NE(less.text.find(results), std::string::npos) << less.text << "instead of\n" << results;
  // The parameters of that launch name all three arrays.
  EXPECT_NE(less.text.find("all arrays 2\ncaptured 0\n"), std::string::npos) << less.text;
  EXPECT_NE(less.text.find("a graph needs the memory of all its nodes at the same time"), std::string::npos)
      << less.text;
}

// If hpe has the PTX of a kernel, only the bytes that the launch can touch must fit in device memory, with and without
// --scope args.
TEST(LargerRun, ALaunchNeedsOnlyTheBytesThatItCanTouch) {
  for (const std::string scope : {"", "--scope args"}) {
    const outcome named = shell(little + scope + program + "much");
    EXPECT_EQ(exit_status(named), 0) << named.text;
    for (const std::string line : {"launch 0\n", "large 0\n", "wait 0\n"})
      EXPECT_NE(named.text.find(line), std::string::npos) << named.text;
  }
}

TEST(LargerRun, LaunchesRunInPartsAsOftenAsNeeded) {
  const std::string stencils = " -- " HPE_TEST_SPREAD_PROGRAM " add diffuse gather count touch large capture";
  const outcome enough = shell(run + stencils);
  ASSERT_EQ(exit_status(enough), 0) << enough.text;
  const outcome less = shell("HPE_LOG=info " + little + stencils);
  EXPECT_EQ(exit_status(less), 0) << less.text;
  for (std::size_t at = 0; at < enough.text.size();) {
    const std::size_t end = enough.text.find('\n', at) + 1;
    EXPECT_NE(less.text.find(enough.text.substr(at, end - at)), std::string::npos) << less.text << "instead of\n"
                                                                                   << enough.text;
    at = end;
  }
  EXPECT_NE(less.text.find("runs in 8 parts, one after the other"), std::string::npos) << less.text;
}

TEST(LargerRun, ALaunchInPartsIsOnePieceForOtherThreads) {
  const outcome less = shell(little + program + "threads");
  EXPECT_EQ(exit_status(less), 0) << less.text;
  EXPECT_EQ(less.text, "different words 0\ndifferent words 0\n");
}

TEST(LargerRun, TellsWhyALaunchCannotRunInParts) {
  const std::string weigh = "HPE_DEVICE_MEMORY=14M " + run + "--oversubscribe -- " HPE_TEST_SPREAD_PROGRAM " weigh";
  const outcome variables = shell(no_zero_copy + weigh);
  EXPECT_EQ(exit_status(variables), 9) << variables.text;
  EXPECT_NE(variables.text.find("the launch cannot run in parts one after the other: it uses variables of its program"),
            std::string::npos)
      << variables.text;
  const outcome neither = shell("STAND_IN_NO_HOST_MEMORY=1 " + weigh);
  EXPECT_EQ(exit_status(neither), 9) << neither.text;
  for (const char* const words : {"it uses variables of its program", "the CUDA driver maps no host memory"})
    EXPECT_NE(neither.text.find(words), std::string::npos) << neither.text;
  const outcome on_host = shell("HPE_LOG=error " + weigh);
  EXPECT_EQ(exit_status(on_host), 0) << on_host.text;
  EXPECT_EQ(on_host.text, shell(run + "-- " HPE_TEST_SPREAD_PROGRAM " weigh").text);
}

// The program prints the error of a launch and continues.
TEST(LargerRun, RefusedWorkIsToldAtTheEndAndIsAnErrorIfWanted) {
  const outcome told = shell(no_zero_copy + little + "--scope args" + program + "graphs");
  EXPECT_EQ(exit_status(told), 0) << told.text;
  EXPECT_NE(told.text.find("device work that were refused or failed: 1;"), std::string::npos) << told.text;
  const outcome strict = shell(no_zero_copy + little + "--scope args --strict" + program + "graphs");
  EXPECT_EQ(exit_status(strict), 1) << strict.text;
  EXPECT_NE(strict.text.find("captured 0\n"), std::string::npos) << strict.text;  // buffered output was written
  const outcome right = shell(little + "--strict" + program + "much");
  EXPECT_EQ(exit_status(right), 0) << right.text;
  EXPECT_EQ(right.text.find("refused"), std::string::npos) << right.text;
  const outcome own = shell(no_zero_copy + "HPE_DEVICE_MEMORY=14M " + run +
                            "--oversubscribe --strict -- " HPE_TEST_SPREAD_PROGRAM " weigh");
  EXPECT_EQ(exit_status(own), 9) << own.text;  // the program's own status
}

TEST(LargerRun, MemoryLooksLikeTheDrivers) {
  const outcome told = shell(little + "--scope args" + program + "ask");
  EXPECT_EQ(exit_status(told), 0) << told.text;
  for (const std::string line :
       {"memory 0 of 16, base 1, bytes 20971520\n", "type 2, device 0, context 1, host 1\n",
        "capable 0, mapping 1, mapped 1, beside 99\n", "not known 1, none 1, null 1\n", "ipc 801\n",
        "ipc of little 0\n", "nowhere 1\n", "freed twice 1\n", "pitch 5120\n", "after the reset 16 of 16\n"})
    EXPECT_NE(told.text.find(line), std::string::npos) << line << "is not in\n" << told.text;
  EXPECT_NE(told.text.find("other processes cannot get it"), std::string::npos) << told.text;
  EXPECT_EQ(told.text.find("is wrong"), std::string::npos) << told.text;
}

// The default of the option is the same for all programs; for CUDA programs, it means "off".
TEST(LargerRun, WithoutTheOptionAllocationsAreTheDrivers) {
  const auto asked = [](const std::string& value) {
    return shell("HPE_DEVICE_MEMORY=16M " + run + "-- env " + value + HPE_TEST_LARGER_PROGRAM " ask").text;
  };
  const std::string all_of_device = "memory 192 of 192";
  for (const std::string value : {"", "HPE_OVERSUBSCRIBE=auto ", "HPE_OVERSUBSCRIBE=off "})
    EXPECT_NE(asked(value).find(all_of_device), std::string::npos) << value;
  const std::string wrong = asked("HPE_OVERSUBSCRIBE=yes ");
  EXPECT_NE(wrong.find(all_of_device), std::string::npos) << wrong;
  EXPECT_NE(wrong.find("HPE_OVERSUBSCRIBE=\"yes\" is none of on, off and auto"), std::string::npos) << wrong;
  EXPECT_EQ(asked("HPE_OVERSUBSCRIBE=on ").find(all_of_device), std::string::npos);
}

TEST(LargerRun, CpuCodeMayTouchTheMemory) {
  const outcome enough = shell(run + program + "touch");
  ASSERT_EQ(exit_status(enough), 0) << enough.text;
  const outcome less = shell(little + "--scope args" + program + "touch");
  EXPECT_EQ(exit_status(less), 0);
  EXPECT_EQ(less.text, enough.text);
}

}  // namespace
