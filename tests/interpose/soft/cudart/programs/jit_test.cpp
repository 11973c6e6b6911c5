// Programs that compile kernels at run time get PTX if they request machine code.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/interpose/soft/cudart/programs/soft_run.h"

namespace {

TEST(Nvrtc, GivesPtxInPlaceOfMachineCode) {
  const outcome o = soft_run(cuda_program("nvrtc"));
  EXPECT_EQ(exit_status(o), 0);
  EXPECT_EQ(o.text,
            "destroyed: 1\none option: 7\ndestroyed: 1\ntwo options: 7\ndestroyed: 1\nof PTX: 0 bytes of machine code\n"
            "NVRTC_ERROR_INVALID_OPTION\ndestroyed: 1\n");
}

// Programs use the compute capability to choose the GPU for which they compile, or the kernels that they run.
TEST(Capability, IsTheOneThatTheUserNames) {
  EXPECT_EQ(soft_run("env HPE_CUDA_CAPABILITY=8.6 " + cuda_program("driver-only")).text, "driver: 2 devices of 8.6\n");
  EXPECT_EQ(soft_run("env HPE_CUDA_CAPABILITY=7.5 " + cuda_program("small-shared")).text, "small: right\n");
  for (const char* const wrong : {"7.3", "9", "10.0", "x"}) {
    const outcome o = soft_run(std::string("env HPE_CUDA_CAPABILITY=") + wrong + " " + cuda_program("driver-only"));
    EXPECT_NE(exit_status(o), 0) << wrong;
    EXPECT_NE(o.text.find("HPE_CUDA_CAPABILITY=\"" + std::string(wrong) + "\" is none of 7.5, 8.0"), std::string::npos)
        << o.text;
  }
}

// Calls ptxas as Triton does.
TEST(Ptxas, KeepsPtx) {
  const std::filesystem::path place = "/tmp/hpe-ptxas-" + std::to_string(::getpid());
  std::filesystem::create_directory(place);
  const std::string in = place / "kernel.ptx", out = place / "kernel.cubin", text = ".version 8.0\n.target sm_80\n";
  std::ofstream(in) << text;
  const std::string command = "sh -c '$TRITON_PTXAS_PATH -lineinfo -v --gpu-name=sm_90a " + in + " -o " + out +
                              " && $TRITON_PTXAS_PATH --version | grep -o \"release [0-9.]*\"'";
  const outcome o = soft_run(command);
  std::ifstream file(out, std::ios::binary);
  const std::string made{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::filesystem::remove_all(place);
  EXPECT_EQ(o.text, "release 13.0\n");
  EXPECT_EQ(made, text + '\0');
  const outcome of_nothing = soft_run("sh -c '$TRITON_PTXAS_PATH -o x'");
  EXPECT_NE(exit_status(of_nothing), 0);
  EXPECT_NE(of_nothing.text.find("no file of PTX"), std::string::npos) << of_nothing.text;
}

// For newer compute capabilities, Triton calls the program that TRITON_PTXAS_BLACKWELL_PATH names. Both variables must
// name hpe's ptxas.
TEST(Ptxas, IsBothOfTritons) {
  const outcome o =
      soft_run("sh -c 'test -x \"$TRITON_PTXAS_PATH\" && cmp $TRITON_PTXAS_PATH $TRITON_PTXAS_BLACKWELL_PATH'");
  EXPECT_EQ(exit_status(o), 0) << o.text;
}

TEST(JitVariables, CuPyCompilesToPtxAndUsesNoModuleWithARuntimeOfItsOwn) {
  EXPECT_EQ(soft_run("sh -c 'echo $CUPY_COMPILE_WITH_PTX ${CUPY_ACCELERATORS-cub}.'").text, "1 .\n");
}

TEST(JitVariables, NameTheNvccThatStandsBeforeTheToolkits) {
  const outcome o = soft_run("sh -c 'test \"$NVCC\" && test $NVCC = $(command -v nvcc)'");
  EXPECT_EQ(exit_status(o), 0) << o.text;
}

TEST(Nvcc, RefusesToLinkMachineCode) {
  const outcome o = soft_run("nvcc -arch=sm_90 --cubin --device-link a.o -o a.cubin");
  EXPECT_NE(exit_status(o), 0);
  EXPECT_NE(o.text.find("--cubin with --device-link makes machine code"), std::string::npos) << o.text;
}

TEST(JitVariables, OfTheUserAreLeftAlone) {
  for (const std::string name :
       {"TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH", "CUPY_COMPILE_WITH_PTX", "CUPY_ACCELERATORS", "NVCC"}) {
    const outcome o = shell(name + "=/mine " HPE_COMMAND " run --cuda soft -- sh -c 'echo $" + name + "'");
    EXPECT_EQ(o.text, "/mine\n");
  }
}

}  // namespace
