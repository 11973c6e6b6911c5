// Tests of the command `hpe run`.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/shell.h"
#include "tests/temporary_folder.h"

namespace {

const std::string hpe = HPE_COMMAND;
const std::string with_stand_in = "HPE_CUDA_DRIVER=" HPE_TEST_STAND_IN " ";
const std::string without_driver = "HPE_CUDA_DRIVER=/no/such/driver ";

TEST(Run, StatusAndStreamsAreTheProgramsOwn) {
  const outcome o = shell("echo given | " + hpe + " run -- sh -c 'read word; echo got $word; exit 7'");
  EXPECT_EQ(exit_status(o), 7);
  EXPECT_EQ(o.text, "got given\n");
}

TEST(Run, SignalsAreTheProgramsOwn) {
  const outcome o = shell("exec " + hpe + " run -- sh -c 'kill -TERM $$'");
  EXPECT_TRUE(WIFSIGNALED(o.status) && WTERMSIG(o.status) == SIGTERM) << o.status;
}

TEST(Run, OptionsAreVariablesOfTheProgram) {
  const outcome o = shell(hpe + " run --devices soft:3 --log debug -- sh -c 'echo $HPE_DEVICES $HPE_LOG'");
  EXPECT_EQ(o.text, "soft:3 debug\n");
}

TEST(Run, WordsAfterTheProgramAreItsOwn) { EXPECT_EQ(shell(hpe + " run echo --log -- x").text, "--log -- x\n"); }

TEST(Run, RefusesInvalidArguments) {
  EXPECT_EQ(exit_status(shell(hpe + " run")), 2);
  EXPECT_EQ(exit_status(shell(hpe + " run --log")), 2);
  const outcome o = shell(hpe + " run --lgo x -- true");
  EXPECT_EQ(exit_status(o), 2);
  EXPECT_NE(o.text.find("--log"), std::string::npos) << o.text;
}

TEST(Run, ChecksAProgramOnGpus) {
  const outcome checked = shell(with_stand_in + hpe + " run --check -- " HPE_TEST_LINKED_PROGRAM);
  EXPECT_NE(checked.text.find("hpe check: on GPUs, only accesses of kernels that certainly happen count"),
            std::string::npos)
      << checked.text;
  for (const char* const option : {"--spread", "--oversubscribe"}) {
    const outcome both = shell(with_stand_in + hpe + " run --check " + option + " -- " HPE_TEST_LINKED_PROGRAM);
    EXPECT_EQ(exit_status(both), 2) << both.text;
    EXPECT_NE(both.text.find("--check works neither with --spread nor with --oversubscribe"), std::string::npos)
        << both.text;
  }
  const outcome soft = shell(with_stand_in + hpe + " run --check --cuda soft -- sh -c 'echo $HPE_SEGMENT_SIZE'");
  EXPECT_EQ(soft.text, "128G\n");
}

TEST(Run, RefusesAPlaceForCudaThatThereIsNot) {
  const outcome word = shell(hpe + " run --cuda sotf -- true");
  EXPECT_EQ(exit_status(word), 2);
  EXPECT_NE(word.text.find("Did you mean \"soft\""), std::string::npos) << word.text;
  EXPECT_EQ(exit_status(shell("HPE_CUDA=gpu " + hpe + " run -- true")), 2);
  EXPECT_EQ(exit_status(shell("HPE_CUDA= " + hpe + " run -- true")), 2);
  const outcome driver = shell(without_driver + hpe + " run --cuda driver -- echo ran");
  EXPECT_EQ(exit_status(driver), 126);
  EXPECT_EQ(driver.text.find("ran\n"), std::string::npos) << driver.text;
  EXPECT_NE(driver.text.find("no CUDA driver"), std::string::npos) << driver.text;
  const outcome both = shell(hpe + " run --cuda soft --devices cuda:1 -- true");
  EXPECT_EQ(exit_status(both), 2);
  EXPECT_NE(both.text.find("cuda:1"), std::string::npos) << both.text;
}

TEST(Run, CudaRunsAtThePlaceThatTheOptionNames) {
  const std::string show = " -- sh -c 'echo $LD_PRELOAD $LD_LIBRARY_PATH devices=$HPE_DEVICES'";
  const outcome driver = shell(with_stand_in + hpe + " run" + show);
  EXPECT_NE(driver.text.find("/hpe/cuda/libcuda.so.1:"), std::string::npos) << driver.text;
  EXPECT_EQ(driver.text.find("libcudart"), std::string::npos) << driver.text;
  EXPECT_TRUE(driver.text.ends_with("devices=\n")) << driver.text;
  EXPECT_EQ(shell(with_stand_in + hpe + " run --cuda driver" + show).text, driver.text);

  const outcome soft = shell("LD_LIBRARY_PATH=/mine " + with_stand_in + hpe + " run --cuda soft" + show);
  EXPECT_NE(soft.text.find("/hpe/cudart/libcudart.so.13:"), std::string::npos) << soft.text;
  EXPECT_NE(soft.text.find("/hpe/cudart:/mine "), std::string::npos) << soft.text;
  EXPECT_NE(soft.text.find("/hpe/cudart/libcuda.so.1:"), std::string::npos) << soft.text;
  EXPECT_EQ(soft.text.find("/hpe/cuda/libcuda.so.1"), std::string::npos) << soft.text;
  EXPECT_TRUE(soft.text.ends_with("devices=soft:2\n")) << soft.text;
  const outcome chosen = shell(with_stand_in + hpe + " run --cuda soft --devices soft:3" + show);
  EXPECT_TRUE(chosen.text.ends_with("devices=soft:3\n")) << chosen.text;

  const outcome none = shell(without_driver + hpe + " run" + show);
  EXPECT_NE(none.text.find("/hpe/cudart/libcudart.so.13:"), std::string::npos) << none.text;
  EXPECT_TRUE(none.text.ends_with("devices=\n")) << none.text;
}

TEST(Run, AFileThatIsNoLibraryIsNoDriver) {
  const temporary_folder folder;
  const std::string& place = folder.path();
  std::ofstream(place + "/libcuda.so.1") << "not a library";
  const std::string show = hpe + " run -- sh -c 'echo $LD_PRELOAD'";
  // HPE_CUDA_DRIVER names the file, so that hpe does not find another driver of the machine.
  const outcome named = shell("HPE_CUDA_DRIVER=" + place + "/libcuda.so.1 " + show);
  EXPECT_EQ(named.text.find("/hpe/cuda/libcuda.so.1:"), std::string::npos) << named.text;
  // hpe uses a driver that the dynamic linker finds in the folder.
  std::filesystem::copy_file(HPE_TEST_STAND_IN, place + "/libcuda.so.1",
                             std::filesystem::copy_options::overwrite_existing);
  const outcome found = shell("LD_LIBRARY_PATH=" + place + " " + show);
  EXPECT_NE(found.text.find("/hpe/cuda/libcuda.so.1:"), std::string::npos) << found.text;
}

TEST(Run, SaysWhyAProgramCannotRun) {
  const outcome none = shell(hpe + " run -- /no/such/program");
  EXPECT_EQ(exit_status(none), 127);
  EXPECT_NE(none.text.find("No such file"), std::string::npos) << none.text;
  EXPECT_EQ(exit_status(shell(hpe + " run -- /etc/passwd")), 126);
}

TEST(Run, KeepsTheLibrariesThatTheUserPreloads) {
  const outcome o = shell("LD_PRELOAD=libm.so.6 " + with_stand_in + hpe + " run -- sh -c 'echo $LD_PRELOAD'");
  EXPECT_NE(o.text.find("/hpe/cuda/libcuda.so.1:"), std::string::npos) << o.text;
  EXPECT_NE(o.text.find("libhpe.so"), std::string::npos) << o.text;
  EXPECT_TRUE(o.text.ends_with(":libm.so.6\n")) << o.text;
}

TEST(Run, AProgramLinkedWithTheDriver) {
  const outcome o = shell(with_stand_in + hpe + " run -- " HPE_TEST_LINKED_PROGRAM);
  EXPECT_EQ(exit_status(o), 5);
  EXPECT_EQ(o.text, "cuInit 0\ncopies 0 0 the same\ndirect 152399025\n");
}

TEST(Run, ChildrenOfTheProgramToo) {
  const outcome o = shell(with_stand_in + hpe + " run -- sh -c 'sh -c " HPE_TEST_LINKED_PROGRAM "'");
  EXPECT_EQ(exit_status(o), 5);
  EXPECT_NE(o.text.find("direct 152399025\n"), std::string::npos) << o.text;
}

TEST(Run, HostAccessCanBeTurnedOff) {
  const outcome o =
      shell("HPE_CUDA_HOST_ACCESS=off " + with_stand_in + "exec " + hpe + " run -- " HPE_TEST_LINKED_PROGRAM);
  EXPECT_TRUE(WIFSIGNALED(o.status) && WTERMSIG(o.status) == SIGSEGV) << o.status;
}

TEST(Run, AProfileTellsOfCopiesAndTouches) {
  const outcome o = shell(with_stand_in + hpe + " run --profile -- " HPE_TEST_LINKED_PROGRAM);
  EXPECT_EQ(exit_status(o), 5);
  EXPECT_NE(o.text.find("hpe profile"), std::string::npos) << o.text;
  EXPECT_NE(o.text.find("to devices, staged by hpe"), std::string::npos) << o.text;
  EXPECT_NE(o.text.find("touches of device memory"), std::string::npos) << o.text;
  EXPECT_NE(o.text.find("2.0 MiB to the host"), std::string::npos) << o.text;
  EXPECT_EQ(shell("HPE_PROFILE=0 " + with_stand_in + hpe + " run -- " HPE_TEST_LINKED_PROGRAM).text.find("hpe profile"),
            std::string::npos);
}

TEST(Run, AReportCountsCopiesAndLaunches) {
  const auto page = std::filesystem::path(testing::TempDir()) / ("hpe-launches-" + std::to_string(getpid()) + ".html");
  const outcome o = shell(with_stand_in + hpe + " run --report " + page.string() + " -- " HPE_TEST_LINKED_PROGRAM);
  EXPECT_EQ(exit_status(o), 5) << o.text;
  std::ostringstream text;
  text << std::ifstream(page).rdbuf();
  EXPECT_NE(text.str().find("\"launches\":2"), std::string::npos) << text.str().substr(0, 2000);
  std::filesystem::remove(page);
}

TEST(Run, LongWaitsAreReported) {
  const outcome o = shell("HPE_STALL_AFTER=1 " + with_stand_in + hpe + " run -- " HPE_TEST_LINKED_PROGRAM " slow");
  EXPECT_EQ(exit_status(o), 0) << o.text;
  for (const char* words :
       {": cuStreamSynchronize(0x0) waits for work", ": cuEventSynchronize(0x", ": its read of device memory at 0x"}) {
    const std::size_t found = o.text.find(words);
    ASSERT_NE(found, std::string::npos) << words << "\n" << o.text;
    const std::size_t line = o.text.rfind('\n', found) + 1;
    EXPECT_NE(o.text.substr(line, found - line).find("linked_program.cpp:"), std::string::npos) << o.text;
  }
}

// The program launches kernels that only the stand-in has, so on soft devices the launch fails, and the program's
// status is 9.
TEST(Run, WithoutADriverProgramsCallTheOneOfSoftDevices) {
  const outcome inside = shell(without_driver + hpe + " run -- " HPE_TEST_LINKED_PROGRAM);
  EXPECT_EQ(exit_status(inside), 9) << inside.text;
}

// In a program that `hpe run` has started, a second `hpe run` must not take hpe's driver library for a driver.
TEST(Run, SoftDevicesAreNoDriver) {
  const std::string on_gpus = hpe + " run --cuda driver -- true";
  EXPECT_EQ(shell(hpe + " run --cuda soft --log silent -- " + on_gpus).text, shell(on_gpus).text);
}

TEST(Run, TheLogTellsOfEntriesThatHpeDoesNotKnowAndOfHooksThatAreNotReached) {
  const outcome o = shell("HPE_LOG=info " + with_stand_in + hpe + " run -- " HPE_TEST_LINKED_PROGRAM);
  EXPECT_EQ(o.text.find("bypass hpe"), std::string::npos) << o.text;
  EXPECT_NE(o.text.find("the host touches device memory"), std::string::npos) << o.text;
}

}  // namespace
