// The program replaces this process (with --report it is a child, see report/command.h), so its exit status, signals,
// standard streams and process number are its own. hpe's settings go through the environment, which the children of the
// program inherit: the ranks of mpirun as well.
//
// CUDA programs get libraries in front of NVIDIA's: the shim before the driver, or, to run on soft devices, hpe's own
// CUDA runtime and driver. These are preloaded: the dynamic linker then uses them for every libcudart.so.13,
// libcudart.so.12 or libcuda.so.1 that a program or a library needs, whatever RPATH or RUNPATH says; symbol versions
// keep the two runtimes apart. LD_LIBRARY_PATH is for programs that open libcudart.so or libcuda.so by dlopen, PATH for
// programs that call nvcc to compile kernels.

#include <dlfcn.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "apps/command_line/program.h"
#include "apps/hpe/command.h"
#include "apps/hpe/report/command.h"
#include "hpe/hpe.hpp"

namespace hpe::cli {

namespace {

struct run_option {
  const char* name;
  const char* value;  // name of its value in the help; nullptr: the option takes no value and sets `given`
  const char* variable;
  const char* sentence;
  const char* given = "1";
};

constexpr std::array options{
    run_option{"--cuda", "WHICH", "HPE_CUDA",
               "CUDA on GPUs (driver), on soft devices (soft), or on GPUs if there are any (auto)"},
    run_option{"--devices", "WHICH", "HPE_DEVICES", "the devices of hpe"},
    run_option{"--scope", "WHICH", "HPE_SCOPE",
               "device memory that kernels may use: all, or args for that of their parameters"},
    run_option{"--spread", nullptr, "HPE_SPREAD", "run the kernels of a CUDA program for one device on all devices"},
    run_option{"--explain", nullptr, "HPE_SPREAD_EXPLAIN",
               "with --spread, print at the end which kernels ran on several devices, and why others did not"},
    run_option{"--oversubscribe", nullptr, "HPE_OVERSUBSCRIBE",
               "let a CUDA program allocate more memory than its device has", "on"},
    run_option{"--profile", nullptr, "HPE_PROFILE", "print at the end how long each kind of data movement took"},
    run_option{"--trace", "FILE", "HPE_TRACE", "a timeline of kernels, copies and faults, for ui.perfetto.dev"},
    run_option{"--report", "FILE", "HPE_REPORT", "a page for a browser: where the time went, when, and advice"},
    run_option{"--log", "LEVEL", "HPE_LOG", "the messages of hpe on standard error"},
};

/// The values of HPE_CUDA: where CUDA programs run.
constexpr std::array<const char*, 3> cuda_places{"auto", "driver", "soft"};

void set_variable(const char* name, const std::string& value) {
  ::setenv(name, value.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
}

/// The options of the table, and --help. Each option sets its variable; the value of --report goes into `report` too.
std::vector<command_line::option> rows(bool& help, std::string& report) {
  std::vector<command_line::option> all;
  for (const run_option& o : options)
    all.push_back({o.name, o.value != nullptr ? o.value : "", fmt::format("{} ({})", o.sentence, o.variable),
                   [&](const std::string& name, const std::string& value) {
                     set_variable(o.variable, o.value != nullptr ? value : o.given);
                     if (name == "--report") report = value;
                   }});
  all.push_back(command_line::help_option(help));
  return all;
}

int print_usage() {
  bool help = false;
  std::string report;
  fmt::print(
      "Usage: hpe run [options] -- <program> [arguments]\n\n"
      "Runs a program with hpe inside. The program is not changed: it may be a CUDA program linked in any way, an MPI\n"
      "program, or mpirun with either. Its exit status, signals and streams are its own. Without NVIDIA's driver, "
      "CUDA\n"
      "programs run on soft devices if they are linked with -cudart shared and carry PTX.\n\n"
      "{}\n`hpe help options` describes the variables in parentheses, and others.\n",
      command_line::lines_of_help(rows(help, report)));
  return 0;
}

std::filesystem::path library() {
  Dl_info about{};
  if (::dladdr(reinterpret_cast<const void*>(&hpeGetOptions), &about) == 0)
    throw error(HPE_ERROR_INTERNAL, "libhpe.so is not found by one of its functions");
  return std::filesystem::canonical(about.dli_fname);
}

/// The value of an environment variable; empty if it is not set.
std::string variable(const char* name) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): one thread
  return value != nullptr ? value : "";
}

/// hpe's own CUDA runtime library, its form for CUDA 12, and hpe's own driver library. Builds without the CUDA toolkit
/// have none.
std::filesystem::path soft_runtime() { return library().parent_path() / "hpe" / "cudart" / "libcudart.so.13"; }
std::filesystem::path soft_runtime_of_cuda_12() { return soft_runtime().replace_filename("libcudart.so.12"); }
std::filesystem::path soft_driver() { return soft_runtime().replace_filename("libcuda.so.1"); }

/// The library that is loaded in front of NVIDIA's driver. Builds without the CUDA toolkit do not have it.
std::filesystem::path shim() { return library().parent_path() / "hpe" / "cuda" / "libcuda.so.1"; }

/// Whether a program would find a CUDA driver; without a driver, no shim is preloaded. The shim, which has to find the
/// driver later, returns its file. Opening the driver here would take as long again as in the program.
bool has_driver() {
  void* const opened = ::dlopen(shim().c_str(), RTLD_LAZY | RTLD_LOCAL);
  auto* const driver_file =
      opened != nullptr ? reinterpret_cast<const char* (*)()>(::dlsym(opened, "hpe_cuda_driver_file")) : nullptr;
  return driver_file != nullptr && driver_file() != nullptr;
}

/// Whether there is a driver but no shim, so that CUDA programs would use the driver without hpe.
bool lacks_the_shim() {
  if (std::filesystem::exists(shim())) return false;
  const std::string named = variable("HPE_CUDA_DRIVER");
  return ::dlopen(named.empty() ? "libcuda.so.1" : named.c_str(), RTLD_LAZY | RTLD_LOCAL) != nullptr;
}

/// Whether a folder of PATH has a program of this name.
bool is_on_path(const char* name) {
  std::istringstream folders(variable("PATH"));
  for (std::string folder; std::getline(folders, folder, ':');)
    if (::access((std::filesystem::path(folder) / name).c_str(), X_OK) == 0) return true;
  return false;
}

/// Two lists of files or folders, joined by a colon unless one is empty.
std::string joined(const std::string& first, const std::string& second) {
  return first.empty() || second.empty() ? first + second : fmt::format("{}:{}", first, second);
}

/// Sets the libraries that the dynamic linker loads before a program's own; the user's LD_PRELOAD follows them.
void preload(bool on_soft_devices, bool driver) {
  const std::filesystem::path hpe = library();
  const std::filesystem::path folder = hpe.parent_path();
  std::string files;
  const auto add = [&](const std::filesystem::path& file) {
    if (!std::filesystem::exists(file)) return;
    if (file.native().find_first_of(": ") != std::string::npos)
      throw error(HPE_ERROR_NOT_SUPPORTED,
                  fmt::format("{} cannot be preloaded: the dynamic linker takes no blank and no colon in a path",
                              file.string()));
    files = joined(files, file);
  };
  const std::filesystem::path runtime = soft_runtime();
  if (on_soft_devices && std::filesystem::exists(runtime)) {
    add(runtime);
    add(soft_runtime_of_cuda_12());
    add(soft_driver());
    set_variable("LD_LIBRARY_PATH", joined(runtime.parent_path(), variable("LD_LIBRARY_PATH")));
    if (is_on_path("nvcc")) set_variable("PATH", joined(runtime.parent_path() / "bin", variable("PATH")));
    // If there is a driver, hpe would choose the GPUs by default.
    if (driver && variable("HPE_DEVICES").empty()) set_variable("HPE_DEVICES", "soft:2");
  } else if (!on_soft_devices && driver) {
    add(shim());
  }
  add(folder / "libhpe-mpi.so");
  add(hpe);
  set_variable("LD_PRELOAD", joined(files, variable("LD_PRELOAD")));
}

/// Decides where CUDA programs run, and sets their environment. Returns 0, or prints an error and returns a status.
int prepare_cuda() {
  const std::string wanted = variable("HPE_CUDA");
  const std::string place = wanted.empty() ? "auto" : wanted;
  if (std::find(cuda_places.begin(), cuda_places.end(), place) == cuda_places.end())
    return refuse("place to run CUDA (--cuda, HPE_CUDA)", place, {cuda_places.begin(), cuda_places.end()});
  for (const auto& [name, file] : {std::pair("driver", shim()), std::pair("soft", soft_runtime())}) {
    if (place != name || std::filesystem::exists(file)) continue;
    fmt::print(stderr, "hpe run: --cuda {}, but this hpe was built without the CUDA toolkit: there is no {}\n", place,
               file.string());
    return cannot_run;
  }
  if (place == "auto" && lacks_the_shim())
    fmt::print(stderr, "hpe run: there is a CUDA driver, but no {}: CUDA programs run on GPUs without hpe\n",
               shim().string());
  const bool driver = has_driver();
  if (place == "driver" && !driver) {
    fmt::print(stderr,
               "hpe run: --cuda driver, but there is no CUDA driver (libcuda.so.1, HPE_CUDA_DRIVER); --cuda soft takes "
               "none\n");
    return cannot_run;
  }
  const std::string devices = variable("HPE_DEVICES"), family = devices.substr(0, devices.find(':'));
  constexpr std::array families{"soft", "cuda"};
  if (!devices.empty() && std::find(families.begin(), families.end(), family) == families.end())
    return refuse("family of devices (--devices, HPE_DEVICES)", family, {families.begin(), families.end()});
  if (place == "soft" && devices.starts_with("cuda")) {
    fmt::print(stderr, "hpe run: --cuda soft and HPE_DEVICES={} do not go together; say soft:2, or nothing\n",
               variable("HPE_DEVICES"));
    return command_line::usage_error;
  }
  const bool on_soft_devices = place == "soft" || !driver;
  preload(on_soft_devices, driver);
  return 0;
}

int run_within(int argc, char** argv) {
  bool help = false;
  std::string report;
  const int at = command_line::read_before_program(rows(help, report), argc, argv);
  if (help) return print_usage();
  if (at >= argc) throw command_line::bad_input("the program is missing; see `hpe run --help`");
  if (const int status = prepare_cuda(); status != 0) return status;
  if (!report.empty()) return run_with_report(report, argv + at);
  ::execvp(argv[at], argv + at);
  const int why = errno;
  fmt::print(stderr, "hpe run: cannot run {}: {}\n", argv[at], std::strerror(why));  // NOLINT(concurrency-mt-unsafe)
  return why == ENOENT ? not_found : cannot_run;
}

}  // namespace

int run_program(int argc, char** argv) {
  return command_line::guarded("hpe run", [&] { return run_within(argc, argv); });
}

}  // namespace hpe::cli
