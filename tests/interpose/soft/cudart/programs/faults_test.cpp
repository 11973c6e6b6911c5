// The errors that a program sees, and the messages on standard error, when a kernel fails.
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <tuple>

#include "tests/interpose/soft/cudart/programs/soft_run.h"

namespace {

struct fault {
  const char* name;
  const char* error;                  // the error that every later call returns, as on a GPU
  const char* kernel;                 // the name of the kernel in the message
  const char* place;                  // the block and thread in the message; empty if any thread may fail first
  const char* source = "faults.cu:";  // the source line in the interpreter's message
};

// NOLINTNEXTLINE(readability-identifier-naming): GoogleTest looks for this name
void PrintTo(const fault& f, std::ostream* out) { *out << f.name; }

class Faults : public testing::TestWithParam<std::tuple<fault, const char*>> {};

TEST_P(Faults, AreReportedAndSticky) {
  const auto& [f, engine] = GetParam();
  const bool interpreted = std::string(engine) == "interpreter";
  const outcome o = soft_run(std::string("env HPE_PTX_ENGINE=") + engine + " " + cuda_program("faults ") + f.name);
  EXPECT_EQ(exit_status(o), 0) << o.text;
  // As on a GPU, the kernel may already have failed when the program queries the error of the launch.
  const bool at_once = o.text.find(std::string("\nlaunch: ") + f.error + "\n") != std::string::npos;
  EXPECT_TRUE(at_once || o.text.find("launch: cudaSuccess\n") != std::string::npos) << o.text;
  for (const char* const call : {"synchronize", "last", "last again", "malloc", "copy", "another launch"})
    EXPECT_NE(o.text.find(std::string("\n") + call + ": " + f.error + "\n"), std::string::npos) << call << '\n'
                                                                                                << o.text;
  EXPECT_NE(o.text.find(f.kernel), std::string::npos) << o.text;
  EXPECT_NE(o.text.find(f.place), std::string::npos) << o.text;
  EXPECT_TRUE(!interpreted || o.text.find(f.source) != std::string::npos) << "no source line\n" << o.text;
  // The message also has the address, which the program prints last.
  const std::string trimmed = o.text.substr(0, o.text.size() - 1);
  const std::string address = trimmed.substr(trimmed.rfind('\n') + 1);
  EXPECT_TRUE(address.empty() || o.text.find(address) < o.text.rfind(address)) << address << '\n' << o.text;
}

INSTANTIATE_TEST_SUITE_P(
    All, Faults,
    testing::Combine(
        testing::Values(
            fault{"bounds", "cudaErrorIllegalAddress", "write_beyond", "thread (37, 0, 0) of block (2, 0, 0)"},
            fault{"null", "cudaErrorIllegalAddress", "write_beyond", "thread (37, 0, 0) of block (2, 0, 0)"},
            fault{"host", "cudaErrorIllegalAddress", "write_beyond", "thread (37, 0, 0) of block (2, 0, 0)"},
            fault{"misaligned", "cudaErrorMisalignedAddress", "read_misaligned",
                  "thread (37, 0, 0) of block (2, 0, 0)"},
            fault{"shared", "cudaErrorIllegalAddress", "fill_tile",
                  "thread (37, 0, 0) of block (2, 0, 0) touched an address that does not belong to the device (shared "
                  "memory, "
                  "offset 148, at s + 148, where the block has 0 bytes)"},
            fault{"assert", "cudaErrorAssert", "check_limit", "too many"},
            fault{"trap", "cudaErrorLaunchFailure", "give_up", "thread (37, 0, 0) of block (2, 0, 0)"},
            fault{"surface", "cudaErrorLaunchFailure", "write_row",
                  "thread (37, 0, 0) of block (2, 0, 0) left a surface: 4 bytes at byte 148, row 5, plane 0 of 256 "
                  "bytes, 5 rows, 1 planes: PTX line ",
                  "surface_indirect_functions.h:"},
            fault{"stack", "cudaErrorHardwareStackError", "recurse", "thread (0, 0, 0) of block (0, 0, 0)"}),
        testing::Values("compiler", "interpreter")),
    [](const testing::TestParamInfo<Faults::ParamType>& f) {
      return std::string(std::get<0>(f.param).name) + "_by_" + std::get<1>(f.param);
    });

bool has(const outcome& o, const std::string& words) { return o.text.find(words) != std::string::npos; }

TEST(Faults, CodeForWarpsInLockstepRunsSoIfAsked) {
  for (const char* const engine : {"compiler", "interpreter"}) {
    const outcome o =
        soft_run(std::string("env HPE_WARPS=lockstep HPE_PTX_ENGINE=") + engine + " " + cuda_program("faults warps"));
    EXPECT_EQ(o.text, "synchronize: cudaSuccess\ncopy: cudaSuccess\nresult: 2016\n");
  }
}

TEST(Faults, RacesAreReportedWithHpeRaces) {
  const outcome o = soft_run("env HPE_RACES=report " + cuda_program("faults warps"));
  EXPECT_TRUE(has(o, "hpe: on device 0, kernel add_in_warp(int*): race in shared memory: thread (")) << o.text;
  EXPECT_TRUE(has(o, "(sums") && has(o, "faults.cu:") && has(o, "with no barrier between")) << o.text;
  EXPECT_EQ(soft_run("env HPE_RACES=yes " + cuda_program("faults below")).text.find("result"), std::string::npos);
}

TEST(Faults, ThereIsRoomBelowAnAllocation) {
  for (const char* const engine : {"compiler", "interpreter"}) {
    const outcome o = soft_run(std::string("env HPE_PTX_ENGINE=") + engine + " " + cuda_program("faults below"));
    EXPECT_EQ(o.text, "synchronize: cudaSuccess\ncopy: cudaSuccess\nresult: 0\n") << engine;
  }
}

TEST(Faults, AsManyBlocksWaitForEachOtherAsTheDeviceClaimsToHold) {
  const outcome o = soft_run("env HPE_SOFT_THREADS=16 " + cuda_program("faults waiting"), 1);
  EXPECT_EQ(o.text, "synchronize: cudaSuccess\ncopy: cudaSuccess\nresult: 512\n");
}

TEST(Faults, WaitingBlocksWithoutRoomAreReported) {
  const outcome o = soft_run(
      "env HPE_SOFT_THREADS=1 HPE_STALL_AFTER=1 HPE_DEVICE_TIMEOUT=6 " + cuda_program("faults waiting 3000"), 1);
  EXPECT_TRUE(
      has(o,
          "it waits for kernel \"wait_for_all(int volatile*, int)\" on device 0: 1024 of its blocks have begun and not "
          "ended, and there is no room for further blocks beside them"))
      << o.text;
}

TEST(Faults, ALaunchThatIsRefusedHarmsNothing) {
  const outcome o = soft_run(cuda_program("faults launch"));
  EXPECT_EQ(exit_status(o), 0) << o.text;
  EXPECT_EQ(o.text,
            "launch: cudaErrorInvalidConfiguration\nnext: cudaSuccess\nsynchronize: cudaSuccess\ncopy: cudaSuccess\n");
}

}  // namespace
