// Runs the hpe command as a user does and looks at what it prints and returns.

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include "apps/command_line/options.h"
#include "apps/hpe/command.h"
#include "apps/hpe/machine.h"

namespace {

struct outcome {
  int status;
  std::string text;
};

/// Runs a shell command line and gives its exit status and all it printed.
outcome shell(const std::string& line) {
  FILE* pipe = popen((line + " 2>&1").c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("popen");
  std::string text;
  std::array<char, 4096> buffer{};
  while (const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe)) text.append(buffer.data(), got);
  const int status = pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text};
}

outcome hpe(const std::string& arguments, const std::string& environment = "") {
  return shell(fmt::format("{} '{}' {}", environment, HPE_COMMAND, arguments));
}

bool contains(const outcome& o, const std::string& part) { return o.text.find(part) != std::string::npos; }

int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++count;
  return count;
}

TEST(command, version_is_one_line) {
  const outcome o = hpe("--version");
  EXPECT_EQ(o.status, 0);
  EXPECT_EQ(o.text, "hpe " HPE_PACKAGE_VERSION "\n");
}

TEST(command, without_arguments_it_tells_what_there_is_and_fails) {
  const outcome o = hpe("");
  EXPECT_EQ(o.status, 2);
  for (const char* name :
       {"info", "run", "explain", "report", "top", "fft", "rtm", "wave", "scan", "sort", "bench", "help"})
    EXPECT_TRUE(contains(o, name)) << o.text;
  EXPECT_EQ(hpe("help").status, 0);
  EXPECT_EQ(hpe("--help").text, o.text);
}

TEST(command, an_unknown_one_fails_and_names_the_likely_one) {
  const outcome o = hpe("inof");
  EXPECT_EQ(o.status, 2);
  EXPECT_TRUE(contains(o, "there is no command \"inof\". Did you mean \"info\"?")) << o.text;
  const outcome far = hpe("seismogram");
  EXPECT_EQ(far.status, 2);
  EXPECT_TRUE(contains(far, "There are: info run explain report top fft rtm wave scan sort bench help")) << far.text;
}

TEST(command, nearest_needs_a_real_likeness) {
  const std::vector<std::string> known{"info", "fft", "rtm", "bench"};
  EXPECT_EQ(hpe::command_line::nearest("rtn", known), "rtm");
  EXPECT_EQ(hpe::command_line::nearest("benhc", known), "bench");
  EXPECT_EQ(hpe::command_line::nearest("xyz", known), "");
  EXPECT_EQ(hpe::command_line::nearest("", known), "");
  EXPECT_EQ(hpe::command_line::nearest("info", {}), "");
}

TEST(help, tells_about_every_command) {
  for (const char* name : {"info", "fft", "rtm", "wave", "scan", "sort", "bench"}) {
    const outcome o = hpe(std::string("help ") + name);
    EXPECT_EQ(o.status, 0) << o.text;
    EXPECT_TRUE(contains(o, std::string("hpe ") + name)) << o.text;
    EXPECT_EQ(hpe(std::string(name) + " --help").text, o.text);
  }
  EXPECT_EQ(hpe("help optoins").status, 2);
  EXPECT_TRUE(contains(hpe("help optoins"), "\"options\"?"));
}

TEST(help, lists_every_option_with_its_default) {
  const outcome o = hpe("help options");
  EXPECT_EQ(o.status, 0);
  EXPECT_TRUE(contains(o, "HPE_DEVICES (default: empty)")) << o.text;
  EXPECT_TRUE(contains(o, "HPE_LOG (default: warn)")) << o.text;
  const hpeOptionInfo* options = nullptr;
  std::size_t count = 0;
  ASSERT_EQ(hpeGetOptions(&options, &count), HPE_SUCCESS);
  for (std::size_t i = 0; i < count; ++i) {
    EXPECT_TRUE(contains(o, options[i].variable)) << options[i].variable;
    EXPECT_TRUE(contains(o, options[i].sentence)) << options[i].sentence;
  }
}

TEST(help, options_need_no_runtime) { EXPECT_EQ(hpe("help options", "HPE_DEVICES=nonsense").status, 0); }

TEST(help, fails_where_standard_output_cannot_be_written) {
  const outcome o = shell(fmt::format("{{ '{}' help >/dev/full; }}", HPE_COMMAND));
  EXPECT_EQ(o.status, 1) << o.text;
  EXPECT_TRUE(contains(o, "standard output cannot be written: No space left on device")) << o.text;
}

TEST(info, warns_of_a_misspelt_variable) {
  const outcome o = hpe("info", "HPE_DEVICES=soft:1 HPE_SOFT_MEMRY=64M");
  EXPECT_EQ(o.status, 0) << o.text;
  EXPECT_TRUE(contains(o, "HPE_SOFT_MEMRY is no option; is HPE_SOFT_MEMORY meant?")) << o.text;
}

TEST(info, tells_about_each_device) {
  const outcome o = hpe("info", "HPE_DEVICES=soft:3 HPE_SOFT_MEMORY=64M");
  EXPECT_EQ(o.status, 0) << o.text;
  EXPECT_TRUE(contains(o, "3 devices")) << o.text;
  EXPECT_EQ(count_of(o.text, " (soft)\n"), 3) << o.text;
  EXPECT_EQ(count_of(o.text, "  64 MiB, "), 3) << o.text;
  EXPECT_EQ(count_of(o.text, "addresses      from 0x"), 3) << o.text;
  EXPECT_EQ(count_of(o.text, "NUMA node      any"), 3) << o.text;

  const outcome placed = hpe("info", "HPE_DEVICES=soft:3 HPE_SOFT_NODES=4,0");
  EXPECT_EQ(placed.status, 0) << placed.text;
  EXPECT_EQ(count_of(placed.text, "NUMA node      4"), 2) << placed.text;
  EXPECT_EQ(count_of(placed.text, "NUMA node      0"), 1) << placed.text;
}

TEST(info, says_which_option_is_wrong) {
  const outcome o = hpe("info", "HPE_DEVICES=nonsense");
  EXPECT_EQ(o.status, 1);
  EXPECT_TRUE(contains(o, "hpe: ")) << o.text;
  EXPECT_TRUE(contains(o, "HPE_DEVICES")) << o.text;
  EXPECT_TRUE(contains(o, "nonsense")) << o.text;
}

TEST(info, tells_which_limits_are_too_low) {
  const auto judged = [](std::optional<double> value, bool bytes) {
    return hpe::cli::judge({"a limit", value, 1 << 20, bytes, "raise it"});
  };
  EXPECT_EQ(judged(std::nullopt, true).value, "unlimited");
  EXPECT_EQ(judged(std::nullopt, true).advice, "");
  EXPECT_EQ(judged(1 << 20, false).value, "1048576");
  EXPECT_EQ(judged(1 << 20, false).advice, "");
  EXPECT_EQ(judged(65530, false).advice, "raise it");
  EXPECT_EQ(judged(1 << 19, true).value, "512 KiB");
  // A limit of this process, as the shell sets it.
  const outcome low = shell(fmt::format("ulimit -n 512; HPE_DEVICES=soft:1 '{}' info", HPE_COMMAND));
  EXPECT_EQ(low.status, 0) << low.text;
  EXPECT_TRUE(contains(low, "open files           512   LOW: several devices")) << low.text;
}

TEST(info, tells_the_limits_that_keep_the_runtime_from_starting) {
  const outcome o = shell(fmt::format("ulimit -f 1000; HPE_DEVICES=soft:1 '{}' info", HPE_COMMAND));
  EXPECT_EQ(o.status, 1) << o.text;
  EXPECT_TRUE(contains(o, "LOW: large sparse files of hpe do not fit: ulimit -f unlimited")) << o.text;
  EXPECT_TRUE(contains(o, "hpe: ")) << o.text;
}

TEST(info, tells_the_gpus_that_the_kernel_drives) {
  const auto root = std::filesystem::path(::testing::TempDir()) / fmt::format("hpe gpus {}", getpid());
  EXPECT_TRUE(hpe::cli::gpus_of_machine(root).empty());
  for (const char* bus : {"0000:b7:00.0", "0000:17:00.0"}) {
    const auto told = root / "proc/driver/nvidia/gpus" / bus, device = root / "sys/bus/pci/devices" / bus;
    std::filesystem::create_directories(told);
    std::filesystem::create_directories(device);
    std::ofstream(told / "information") << "Model: \t\t NVIDIA H200\nIRQ:   \t\t 120\n";
    std::ofstream(device / "current_link_speed") << "32.0 GT/s PCIe\n";
    std::ofstream(device / "current_link_width") << "16\n";
    std::ofstream(device / "numa_node") << (bus[5] == 'b' ? "1\n" : "-1\n");
  }
  const std::vector<hpe::cli::gpu> found = hpe::cli::gpus_of_machine(root);
  std::filesystem::remove_all(root);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].bus, "0000:17:00.0");
  EXPECT_EQ(found[0].model, "NVIDIA H200");
  EXPECT_EQ(found[0].link_speed, "32.0 GT/s PCIe");
  EXPECT_EQ(found[0].link_width, "16");
  EXPECT_EQ(found[0].numa_node, -1);
  EXPECT_EQ(found[1].numa_node, 1);
}

TEST(info, takes_no_arguments) { EXPECT_EQ(hpe("info all").status, 2); }

TEST(info, shows_a_lost_device_and_no_figures_of_it) {
  hpeDeviceInfo device{sizeof(hpeDeviceInfo), HPE_DEVICE_SOFT, "soft 1", 1 << 30, 1 << 30, 4, 1, 3};
  const std::string lost = hpe::cli::describe_device(1, device);
  EXPECT_NE(lost.find("device 1: soft 1 (soft)\n  LOST"), std::string::npos) << lost;
  EXPECT_EQ(lost.find("MiB"), std::string::npos) << lost;
  device.lost = 0;
  const std::string alive = hpe::cli::describe_device(1, device);
  EXPECT_EQ(alive.find("LOST"), std::string::npos) << alive;
  EXPECT_NE(alive.find("1024 MiB, 1024 MiB free"), std::string::npos) << alive;
  EXPECT_NE(alive.find("reaches        devices 0\n"), std::string::npos) << alive;
}

// As where parts of a build were copied to a machine with GPUs. Any library stands for the driver here.
TEST(run, says_where_the_shim_is_missing) {
  const std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) / fmt::format("hpe-run-{}", getpid());
  std::filesystem::create_directories(folder / "bin");
  std::filesystem::create_directories(folder / "lib");
  std::filesystem::copy_file(HPE_COMMAND, folder / "bin" / "hpe");
  std::filesystem::copy_file(HPE_LIBRARIES "/libhpe.so.0", folder / "lib" / "libhpe.so.0");
  const auto run = [&](const std::string& driver, const std::string& command) {
    return shell(fmt::format("HPE_CUDA_DRIVER={} '{}' run -- {}", driver, command, "echo done"));
  };
  const std::string copied = folder / "bin" / "hpe";
  const outcome missing = run("libm.so.6", copied);
  EXPECT_EQ(missing.status, 0) << missing.text;
  EXPECT_TRUE(contains(missing, "there is a CUDA driver, but no " + (folder / "lib/hpe/cuda/libcuda.so.1").string()))
      << missing.text;
  EXPECT_TRUE(contains(missing, "CUDA programs run on GPUs without hpe\ndone\n")) << missing.text;
  EXPECT_EQ(run("libhpe-no-driver.so", copied).text, "done\n");
  std::filesystem::remove_all(folder);
}

/// A folder with a copy of the command and a benchmark beside it, and the libraries where both look for them.
class bench : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(programs_);
    std::filesystem::create_directory_symlink(HPE_LIBRARIES, folder_ / "lib");
    std::filesystem::copy_file(HPE_COMMAND, programs_ / "hpe");
    const std::filesystem::path program = programs_ / "hpe-bench-echo";
    std::ofstream(program) << "#!/bin/sh\n[ \"$1\" = --describe ] && echo 'repeats its arguments' && exit\n"
                              "echo \"got $*\"\nexit 7\n";
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    std::ofstream(programs_ / "hpe-bench-data") << "not a program";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] outcome run(const std::string& arguments) const {
    return shell(fmt::format("'{}' bench {}", (programs_ / "hpe").string(), arguments));
  }

 private:
  const std::filesystem::path folder_ =
      std::filesystem::path(::testing::TempDir()) / fmt::format("hpe bench {}", getpid());
  const std::filesystem::path programs_ = folder_ / "bin";
};

TEST_F(bench, alone_lists_what_is_there) {
  const outcome o = run("");
  EXPECT_EQ(o.status, 0) << o.text;
  EXPECT_EQ(count_of(o.text, "echo        repeats its arguments\n"), 1) << o.text;
  EXPECT_FALSE(contains(o, "data")) << o.text;
}

TEST_F(bench, runs_it_with_its_arguments_and_status) {
  const outcome o = run("echo 1 --two 'a b'");
  EXPECT_EQ(o.status, 7);
  EXPECT_EQ(o.text, "got 1 --two a b\n");
}

TEST_F(bench, refuses_an_unknown_one) {
  const outcome o = run("ecko");
  EXPECT_EQ(o.status, 2);
  EXPECT_TRUE(contains(o, "there is no benchmark \"ecko\". Did you mean \"echo\"?")) << o.text;
}

}  // namespace
