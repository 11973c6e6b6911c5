// `hpe doctor` with programs that nvcc has linked: what `hpe doctor` reads from their files, and whether its
// predictions about `hpe run` are true.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/interpose/soft/cudart/programs/soft_run.h"

namespace {

nlohmann::json doctor(const std::string& program, const std::string& before = "") {
  const outcome o =
      shell(before +
            "HPE_DEVICES=soft:2 HPE_SOFT_MEMORY=256M HPE_CUDA_DRIVER=/no/such/driver " HPE_COMMAND " doctor --json - " +
            program);
  return nlohmann::json::parse(o.text.substr(o.text.find('{')));
}

const nlohmann::json& mode(const nlohmann::json& told, std::size_t number) { return told["examined"]["modes"][number]; }

struct expectation {
  const char* name;
  const char* runtime;
  bool ptx;
  bool runs;
};

TEST(Doctor, ReadsRuntimeAndCodeOfProgramsAndTheirRunAgrees) {
  for (const expectation& e :
       {expectation{"small-shared", "shared", true, true}, expectation{"small-shared-stripped", "shared", true, true},
        expectation{"small-parts", "shared", true, true}, expectation{"small-cubin", "shared", false, false},
        expectation{"small-static", "static", true, false},
        expectation{"small-static-cubin", "static", false, false}}) {
    const nlohmann::json told = doctor(cuda_program(e.name));
    const nlohmann::json& file = told["examined"]["cuda_files"].at(0);
    EXPECT_EQ(file["cuda_runtime"], e.runtime) << e.name;
    EXPECT_EQ(!file["ptx"].empty(), e.ptx) << e.name << file;
    EXPECT_EQ(file["machine_code"] == nlohmann::json({90}), !e.ptx) << e.name << file;
    EXPECT_EQ(mode(told, 0)["state"] != "bad", e.runs) << e.name << mode(told, 0);
    EXPECT_EQ(told["well"], e.runs) << e.name;
    EXPECT_EQ(soft_run(cuda_program(e.name)).text == "small: right\n", e.runs) << e.name;
  }
}

TEST(Doctor, ReadsTheCodeOfLibrariesThatAProgramIsLinkedWith) {
  const nlohmann::json told = doctor("-- " HPE_TEST_PLUGIN_HOST);
  EXPECT_TRUE(told["examined"]["cuda_files"].empty()) << "the program opens its plugin only at run time";
  const std::string preload = "LD_PRELOAD=" + cuda_program("libplugin.so") + " ";
  const nlohmann::json with = doctor(HPE_TEST_PLUGIN_HOST, preload);
  EXPECT_EQ(with["examined"]["cuda_files"].at(0)["file"], cuda_program("libplugin.so")) << with;
}

// If there is a driver, a statically linked runtime is no obstacle. The stand-in does not report the architecture of
// its GPUs.
TEST(Doctor, ProgramsRunOnGpusWhereThereIsADriver) {
  if (std::string(HPE_TEST_DRIVER).empty()) GTEST_SKIP() << "no shim in this build";
  const std::string with_driver = "env HPE_CUDA_DRIVER=" HPE_TEST_DRIVER " ";
  for (const char* const name : {"small-rpath", "small-static"}) {
    const outcome o = shell("HPE_DEVICES=soft:2 HPE_SOFT_MEMORY=256M " + with_driver + HPE_COMMAND " doctor --json - " +
                            cuda_program(name));
    const nlohmann::json told = nlohmann::json::parse(o.text.substr(o.text.find('{')));
    EXPECT_EQ(told["findings"].at(0)["subject"], "CUDA driver");
    EXPECT_EQ(told["findings"].at(0)["state"], "good") << told["findings"].at(0);
    EXPECT_TRUE(std::string(mode(told, 0)["text"]).starts_with("it runs on GPUs")) << name << mode(told, 0);
  }
}

TEST(Doctor, CountsTheKernelsThatExplainCouldSpread) {
  const std::string program = cuda_program("small-shared");
  const nlohmann::json told = doctor(program)["examined"]["kernels"];
  const nlohmann::json explained = nlohmann::json::parse(shell(HPE_COMMAND " explain --json - " + program).text);
  std::size_t kernels = 0, spreadable = 0;
  for (const auto& module : explained["modules"])
    for (const auto& kernel : module["kernels"]) {
      ++kernels;
      spreadable += kernel["may_be_spread"] ? 1 : 0;
    }
  EXPECT_GT(kernels, 0U);
  EXPECT_EQ(told["count"], kernels);
  EXPECT_EQ(told["may_be_spread"], spreadable);
}

}  // namespace
