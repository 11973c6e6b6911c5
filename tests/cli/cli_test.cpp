// Runs the hpe command as a user does, and checks its output and exit status.

#include <dlfcn.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "apps/command_line/command_options.h"
#include "apps/hpe/command.h"
#include "apps/hpe/machine.h"
#include "apps/hpe/nvml.h"
#include "apps/hpe/report/report_command.h"
#include "apps/hpe/running_processes.h"
#include "tests/shell.h"

namespace {

bool interrupted_start = false;  ///< whether a SIGTERM arrives when a program has just been started

}  // namespace

/// Replaces the C library's function, so that the signal arrives between the start of the program and the next
/// statement of hpe run.
extern "C" int posix_spawnp(pid_t* child, const char* file, const posix_spawn_file_actions_t* actions,
                            const posix_spawnattr_t* attributes, char* const argv[], char* const environment[]) {
  auto* const next = reinterpret_cast<decltype(&posix_spawnp)>(::dlsym(RTLD_NEXT, "posix_spawnp"));
  const int result = next(child, file, actions, attributes, argv, environment);
  if (interrupted_start) ::raise(SIGTERM);
  return result;
}

namespace {

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
  EXPECT_EQ(exit_status(o), 0);
  EXPECT_EQ(o.text, "hpe " HPE_PACKAGE_VERSION "\n");
}

TEST(command, without_arguments_it_lists_the_commands_and_fails) {
  const outcome o = hpe("");
  EXPECT_EQ(exit_status(o), 2);
  for (const char* name :
       {"info", "run", "explain", "report", "top", "fft", "rtm", "wave", "scan", "sort", "predict", "bench", "help"})
    EXPECT_TRUE(contains(o, name)) << o.text;
  EXPECT_EQ(exit_status(hpe("help")), 0);
  EXPECT_EQ(hpe("--help").text, o.text);
}

TEST(command, an_unknown_one_fails_and_names_the_likely_one) {
  const outcome o = hpe("inof");
  EXPECT_EQ(exit_status(o), 2);
  EXPECT_TRUE(contains(o, "there is no command \"inof\". Did you mean \"info\"?")) << o.text;
  const outcome far = hpe("seismogram");
  EXPECT_EQ(exit_status(far), 2);
  EXPECT_TRUE(contains(far, "There are: run doctor explain report top info bench predict rtm ")) << far.text;
}

TEST(command, nearest_needs_a_real_likeness) {
  const std::vector<std::string> known{"info", "fft", "rtm", "bench"};
  EXPECT_EQ(hpe::command_line::nearest("rtn", known), "rtm");
  EXPECT_EQ(hpe::command_line::nearest("benhc", known), "bench");
  EXPECT_EQ(hpe::command_line::nearest("xyz", known), "");
  EXPECT_EQ(hpe::command_line::nearest("", known), "");
  EXPECT_EQ(hpe::command_line::nearest("info", {}), "");
}

TEST(help, lists_every_command) {
  for (const char* name : {"info", "fft", "rtm", "wave", "scan", "sort", "bench"}) {
    const outcome o = hpe(std::string("help ") + name);
    EXPECT_EQ(exit_status(o), 0) << o.text;
    EXPECT_TRUE(contains(o, std::string("hpe ") + name)) << o.text;
    EXPECT_EQ(hpe(std::string(name) + " --help").text, o.text);
  }
  EXPECT_EQ(exit_status(hpe("help optoins")), 2);
  EXPECT_TRUE(contains(hpe("help optoins"), "\"options\"?"));
}

TEST(help, lists_every_option_with_its_default) {
  const outcome o = hpe("help options", "COLUMNS=10000");
  EXPECT_EQ(exit_status(o), 0);
  EXPECT_TRUE(contains(o, "HPE_DEVICES (default: empty)")) << o.text;
  EXPECT_TRUE(contains(o, "HPE_LOG (silent, error, warn, info or debug; default: warn)")) << o.text;
  const hpeOptionInfo* options = nullptr;
  std::size_t count = 0;
  ASSERT_EQ(hpeGetOptions(&options, &count), HPE_SUCCESS);
  for (std::size_t i = 0; i < count; ++i) {
    EXPECT_TRUE(contains(o, options[i].variable)) << options[i].variable;
    const std::string sentence = options[i].sentence;
    EXPECT_TRUE(contains(o, sentence.substr(0, sentence.find(" Values: ")))) << sentence;
  }
}

TEST(help, describes_one_option) {
  const outcome o = hpe("help HPE_LOG", "COLUMNS=10000");
  EXPECT_EQ(exit_status(o), 0) << o.text;
  EXPECT_EQ(o.text,
            "  HPE_LOG (silent, error, warn, info or debug; default: warn)\n    The least important messages that hpe "
            "writes to standard error; silent: none.\n");
  const outcome misspelt = hpe("help HPE_LOK");
  EXPECT_EQ(exit_status(misspelt), 2) << misspelt.text;
  EXPECT_TRUE(contains(misspelt, "Did you mean \"HPE_LOG\"?")) << misspelt.text;
}

TEST(help, has_groups) {
  for (const char* group :
       {"\nRun your programs:\n", "\nLook at the machine:\n", "\nApplications, which use all devices:\n"})
    EXPECT_EQ(count_of(hpe("help").text, group), 1) << group;
  const std::string options = hpe("help options").text;
  for (const char* group : {"\nSoft devices:\n", "\nMPI:\n", "\nCUDA programs under hpe run:\n"})
    EXPECT_EQ(count_of(options, group), 1) << group;
  EXPECT_EQ(count_of(hpe("run --help").text, "\nWhere CUDA programs run:\n"), 1);
}

// Lines of examples are not wrapped, so that users can copy them.
TEST(help, fits_the_terminal) {
  std::vector<std::string> topics{"options"};
  std::istringstream lines(hpe("help").text);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("  ") && line.size() > 2 && line[2] != ' ')
      topics.push_back(line.substr(2, line.find(' ', 2) - 2));
  EXPECT_GT(topics.size(), 20U);
  for (const unsigned columns : {60U, 80U})
    for (const std::string& topic : topics) {
      if (topic == "bench") continue;  // lists the benchmarks that exist
      std::istringstream text(hpe("help " + topic, fmt::format("COLUMNS={}", columns)).text);
      for (std::string line; std::getline(text, line) && line != "Examples:";) {
        const bool is_one_word = line.find(' ', line.find_first_not_of(' ')) == std::string::npos;
        EXPECT_TRUE(line.size() <= columns || is_one_word) << topic << " in " << columns << " columns: " << line;
      }
    }
}

TEST(help, of_run_has_examples) {
  const outcome o = hpe("run --help");
  EXPECT_TRUE(contains(o, "\nExamples:\n  hpe run -- ./program")) << o.text;
  EXPECT_TRUE(contains(o, "mpirun -n 4 hpe run")) << o.text;
}

TEST(help, options_need_no_runtime) { EXPECT_EQ(exit_status(hpe("help options", "HPE_DEVICES=nonsense")), 0); }

TEST(help, fails_where_standard_output_cannot_be_written) {
  const outcome o = shell(fmt::format("{{ '{}' help >/dev/full; }}", HPE_COMMAND));
  EXPECT_EQ(exit_status(o), 1) << o.text;
  EXPECT_TRUE(contains(o, "standard output cannot be written: No space left on device")) << o.text;
}

// A file of the runtime must not get the file descriptor of standard output.
TEST(info, fails_where_standard_output_is_closed) {
  const outcome o = shell(fmt::format("{{ HPE_DEVICES=soft:1 '{}' info >&-; }}", HPE_COMMAND));
  EXPECT_EQ(exit_status(o), 1) << o.text;
  EXPECT_EQ(o.text, "hpe: standard output cannot be written: Bad file descriptor\n");
}

TEST(run_preloads, takes_commands_of_hpe_without_a_word_about_their_cuda_runtime) {
  const outcome o = hpe("run -- " HPE_COMMAND " info", "HPE_DEVICES=soft:1");
  EXPECT_EQ(exit_status(o), 0) << o.text;
  EXPECT_FALSE(contains(o, "CUDA runtime")) << o.text;
}

TEST(info, warns_of_a_misspelt_variable) {
  const outcome o = hpe("info", "HPE_DEVICES=soft:1 HPE_SOFT_MEMRY=64M");
  EXPECT_EQ(exit_status(o), 0) << o.text;
  EXPECT_TRUE(contains(o, "HPE_SOFT_MEMRY is not an option; did you mean HPE_SOFT_MEMORY?")) << o.text;
}

TEST(info, describes_each_device) {
  const outcome o = hpe("info", "HPE_DEVICES=soft:3 HPE_SOFT_MEMORY=64M");
  EXPECT_EQ(exit_status(o), 0) << o.text;
  EXPECT_TRUE(contains(o, "3 devices")) << o.text;
  EXPECT_EQ(count_of(o.text, " (soft)\n"), 3) << o.text;
  EXPECT_EQ(count_of(o.text, "  64 MiB, "), 3) << o.text;
  EXPECT_EQ(count_of(o.text, "addresses      from 0x"), 3) << o.text;
  EXPECT_EQ(count_of(o.text, "NUMA node      any"), 3) << o.text;

  const outcome placed = hpe("info", "HPE_DEVICES=soft:3 HPE_SOFT_NODES=4,0");
  EXPECT_EQ(exit_status(placed), 0) << placed.text;
  EXPECT_EQ(count_of(placed.text, "NUMA node      4"), 2) << placed.text;
  EXPECT_EQ(count_of(placed.text, "NUMA node      0"), 1) << placed.text;
}

TEST(info, says_which_option_is_wrong) {
  const outcome o = hpe("info", "HPE_DEVICES=nonsense");
  EXPECT_EQ(exit_status(o), 1);
  EXPECT_TRUE(contains(o, "hpe: ")) << o.text;
  EXPECT_TRUE(contains(o, "HPE_DEVICES")) << o.text;
  EXPECT_TRUE(contains(o, "nonsense")) << o.text;
}

TEST(info, marks_limits_that_are_too_low) {
  const auto judged = [](std::optional<double> value, bool bytes) {
    return hpe::cli::judge({"a limit", value, 1 << 20, bytes, "raise it"});
  };
  EXPECT_EQ(judged(std::nullopt, true).value, "unlimited");
  EXPECT_EQ(judged(std::nullopt, true).advice, "");
  EXPECT_EQ(judged(1 << 20, false).value, "1048576");
  EXPECT_EQ(judged(1 << 20, false).advice, "");
  EXPECT_EQ(judged(65530, false).advice, "raise it");
  EXPECT_EQ(judged(1 << 19, true).value, "512 KiB");
  // The shell sets the limit for the command.
  const outcome low = shell(fmt::format("ulimit -n 512; HPE_DEVICES=soft:1 '{}' info", HPE_COMMAND));
  EXPECT_EQ(exit_status(low), 0) << low.text;
  EXPECT_TRUE(contains(low, "open files           512   LOW: several devices")) << low.text;
}

TEST(info, lists_the_limits_that_keep_the_runtime_from_starting) {
  const outcome o = shell(fmt::format("ulimit -f 1000; HPE_DEVICES=soft:1 '{}' info", HPE_COMMAND));
  EXPECT_EQ(exit_status(o), 1) << o.text;
  EXPECT_TRUE(contains(o, "LOW: hpe's large sparse files exceed this limit: ulimit -f unlimited")) << o.text;
  EXPECT_TRUE(contains(o, "hpe: ")) << o.text;
}

// The limit of processes does not apply to the superuser.
TEST(info, names_the_limit_of_processes) {
  if (::getuid() != 0) GTEST_SKIP() << "only the superuser can become another user";
  const outcome o =
      shell(fmt::format("HPE_DEVICES=soft:1 HPE_SOFT_THREADS=200 setpriv --reuid 65534 --regid 65534 "
                        "--clear-groups bash -c 'ulimit -u 100; exec \"{}\" info'",
                        HPE_COMMAND));
  EXPECT_EQ(exit_status(o), 1) << o.text;
  EXPECT_TRUE(contains(o, "processes            100   LOW: each soft device is a process")) << o.text;
  EXPECT_TRUE(contains(o, "the thread softd-unit cannot be made")) << o.text;
  EXPECT_TRUE(contains(o, "RLIMIT_NPROC (100, ulimit -u)")) << o.text;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool sanitizer_needs_mappings = true;
#else
constexpr bool sanitizer_needs_mappings = false;
#endif

TEST(info, names_the_limit_of_data_segments) {
  if (sanitizer_needs_mappings) GTEST_SKIP() << "the sanitizer ends the program if it cannot map memory";
  const outcome o = shell(fmt::format("ulimit -d 30000; HPE_DEVICES=soft:1 '{}' info", HPE_COMMAND));
  EXPECT_EQ(exit_status(o), 1) << o.text;
  EXPECT_TRUE(contains(o, "data segment         29.3 MiB   LOW: hpe's tables, buffers")) << o.text;
  EXPECT_TRUE(contains(o, "ulimit -d")) << o.text;
}

TEST(info, lists_the_gpus_that_the_kernel_drives) {
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

TEST(info, lists_the_links_between_gpus) {
  EXPECT_TRUE(hpe::cli::links_of_gpus("libno-such-library.so").empty());
  const std::vector<hpe::cli::gpu_links> found = hpe::cli::links_of_gpus(HPE_TEST_NVML);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].bus, "0000:17:00.0");
  EXPECT_EQ(hpe::cli::describe_links(found[0]),
            "  NVLink         6 links of version 4 to 0000:b7:00.0\n"
            "  NVLink         2 links of version 4 to a switch\n"
            "  PCI            to 0000:b7:00.0 through one PCI host bridge\n"
            "  PCI            to 0000:c1:00.0 through the link between NUMA nodes\n");
  EXPECT_TRUE(found[2].links.empty());
  EXPECT_EQ(hpe::cli::links_from(found, "0000:b7:00.0").links.at(0).to, "0000:17:00.0");
  EXPECT_TRUE(hpe::cli::links_from(found, "0000:00:00.0").paths.empty());
}

TEST(info, lists_the_links_of_soft_devices) {
  const outcome o = hpe("info", "HPE_DEVICES=soft:2 HPE_SOFT_HOST_LINK=12G:5 HPE_SOFT_MEMORY=64M");
  EXPECT_EQ(count_of(o.text, "to the host 12G bytes/s and 5 us, to other devices without a limit\n"), 2) << o.text;
}

TEST(report, a_signal_that_arrives_while_the_program_starts_is_forwarded) {
  const auto page = std::filesystem::path(::testing::TempDir()) / fmt::format("hpe signal {}.html", getpid());
  interrupted_start = true;
  std::string program = "sleep", seconds = "100";
  char* argv[] = {program.data(), seconds.data(), nullptr};
  EXPECT_EXIT(::_exit(hpe::cli::run_with_report(page.string(), argv)), ::testing::KilledBySignal(SIGTERM), "");
  interrupted_start = false;
  EXPECT_TRUE(std::filesystem::exists(page));  // hpe run writes the page after the program has ended
  std::filesystem::remove(page);
}

TEST(top, columns_stay_apart) {
  hpe::cli::running_process many;
  many.number = 4194304;
  many.rank = "100000";
  many.command = "./many devices";
  for (int d = 0; d < 8; ++d) many.devices.push_back({"soft", 80'000'000'000, 12'300'000'000});
  hpe::cli::running_process one;
  one.number = 7;
  one.command = "./one";
  const std::string table = hpe::cli::table_of({{many, {1.23e9, 999.4, 1e12, 5, 123456, 0}}, {one, {}}}, 1000);
  std::istringstream lines(table);
  std::string title, empty, head, first, second, all;
  for (std::string* line : {&title, &empty, &head, &first, &second, &all}) std::getline(lines, *line);
  const std::size_t column = head.find("command");
  EXPECT_EQ(first.find("./many devices"), column) << table;
  EXPECT_EQ(second.find("./one"), column) << table;
  EXPECT_EQ(head.find("device bytes") + std::string("device bytes").size(), first.rfind("12.3G") + 5) << table;
  for (const char* word : {"4194304", " 100000 ", " 1.23G ", " 123k "})
    EXPECT_NE(first.find(word), std::string::npos) << table;
}

TEST(info, takes_no_arguments) { EXPECT_EQ(exit_status(hpe("info all")), 2); }

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

// The folder contains only a part of a build, as a user might copy it to a machine with GPUs. Any library can serve as
// the CUDA driver in this test.
TEST(run_preloads, says_where_the_shim_is_missing) {
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
  EXPECT_EQ(exit_status(missing), 0) << missing.text;
  EXPECT_TRUE(
      contains(missing, "there is a CUDA driver, but the file " + (folder / "lib/hpe/cuda/libcuda.so.1").string()))
      << missing.text;
  EXPECT_TRUE(contains(missing, "CUDA programs run on GPUs without hpe\ndone\n")) << missing.text;
  EXPECT_EQ(run("libhpe-no-driver.so", copied).text, "done\n");
  std::filesystem::remove_all(folder);
}

TEST(run_preloads, refuses_outputs_that_cannot_be_written_before_the_program_runs) {
  const std::string folder = ::testing::TempDir();
  for (const std::string options : {"--trace /nonexistent/t.json", "--trace /nonexistent/%p.json", "--trace ''",
                                    "--trace=", "--report=", "--report /nonexistent/r.html", "--report ''"}) {
    const outcome o = hpe("run " + options + " -- echo ran");
    EXPECT_EQ(exit_status(o), 2) << options << ": " << o.text;
    EXPECT_FALSE(contains(o, "ran\n")) << options;
    EXPECT_TRUE(contains(o, "hpe run: --")) << o.text;
  }
  const outcome by_variable = hpe("run -- echo ran", "HPE_TRACE=/nonexistent/t.json");
  EXPECT_EQ(exit_status(by_variable), 2) << by_variable.text;
  const outcome fine = hpe("run --trace '" + folder + "/hpe %p.json' -- echo ran");
  EXPECT_EQ(fine.text, "ran\n");
}

TEST(run, refuses_values_that_an_option_does_not_have) {
  for (const char* option : {"--scope arg", "--log loud", "--cuda gpu", "--log 'warn|info'"}) {
    const outcome o = shell(fmt::format("'{}' run {} -- echo ran 2>&1", HPE_COMMAND, option));
    EXPECT_EQ(exit_status(o), 2) << option << ": " << o.text;
    EXPECT_NE(o.text.find("possible values are"), std::string::npos) << o.text;
    EXPECT_EQ(o.text.find("ran"), std::string::npos) << o.text;
  }
}

TEST(run_preloads, leaves_mpi_alone_where_it_is_told_so) {
  const std::string show = "run -- sh -c 'echo $LD_PRELOAD'";
  EXPECT_TRUE(contains(hpe(show), "libhpe-mpi.so"));
  EXPECT_FALSE(contains(hpe(show, "HPE_MPI=off"), "libhpe-mpi.so"));
  EXPECT_TRUE(contains(hpe(show, "HPE_MPI=on"), "libhpe-mpi.so"));
}

TEST(run, refuses_a_wrong_value_of_an_option_before_the_program_runs) {
  for (const std::string wrong : {"HPE_MPI=of", "HPE_MPI=", "HPE_CUDA=gpu", "HPE_CUDA=", "HPE_PROFILE=yes",
                                  "HPE_SCOPE=none", "HPE_SOFT_MEMORY=lots"}) {
    const outcome o = hpe("run -- echo ran", wrong);
    EXPECT_EQ(exit_status(o), 2) << wrong << ": " << o.text;
    EXPECT_TRUE(o.text.starts_with("hpe run: " + wrong.substr(0, wrong.find('=')))) << o.text;
    EXPECT_EQ(std::count(o.text.begin(), o.text.end(), '\n'), 1) << o.text;
  }
  EXPECT_TRUE(contains(hpe("run -- true", "HPE_SCOPE="), "HPE_SCOPE=\"\" is none of auto, all and args"));
  EXPECT_TRUE(contains(hpe("run -- true", "HPE_PROFILE=yes"), "HPE_PROFILE=\"yes\" is none of on, off, 1 and 0"));
}

/// A folder with a copy of the command, a benchmark beside it, and the libraries in the place in which both programs
/// look for them.
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

  void remove() const { std::filesystem::remove(programs_ / "hpe-bench-echo"); }

  [[nodiscard]] outcome run(const std::string& arguments) const {
    return shell(fmt::format("'{}' bench {}", (programs_ / "hpe").string(), arguments));
  }

 private:
  const std::filesystem::path folder_ =
      std::filesystem::path(::testing::TempDir()) / fmt::format("hpe bench {}", getpid());
  const std::filesystem::path programs_ = folder_ / "bin";
};

TEST_F(bench, without_a_name_lists_the_benchmarks) {
  const outcome o = run("");
  EXPECT_EQ(exit_status(o), 0) << o.text;
  EXPECT_EQ(count_of(o.text, "echo        repeats its arguments\n"), 1) << o.text;
  EXPECT_FALSE(contains(o, "data")) << o.text;
}

TEST_F(bench, runs_it_with_its_arguments_and_status) {
  const outcome o = run("echo 1 --two 'a b'");
  EXPECT_EQ(exit_status(o), 7);
  EXPECT_EQ(o.text, "got 1 --two a b\n");
}

TEST_F(bench, without_any_names_the_target_that_builds_them) {
  remove();
  for (const char* const arguments : {"", "echo", "--help"}) {
    const outcome o = run(arguments);
    EXPECT_EQ(exit_status(o), arguments == std::string("--help") ? 0 : 1) << o.text;
    EXPECT_TRUE(contains(o, "--target hpe-benchmarks")) << o.text;
  }
}

TEST_F(bench, refuses_an_unknown_one) {
  const outcome o = run("ecko");
  EXPECT_EQ(exit_status(o), 2);
  EXPECT_TRUE(contains(o, "there is no benchmark \"ecko\". Did you mean \"echo\"?")) << o.text;
}

}  // namespace
