// The program replaces this process, so the caller sees the program's own exit status, signals, standard streams and
// process number. With --report, the program is a child of this process (report/report_command.h). hpe passes settings
// in the environment, which the children of the program inherit, including the ranks of mpirun.
//
// For CUDA programs, hpe preloads its libraries, so that they take precedence over NVIDIA's: on GPUs the shim, and on
// soft devices hpe's own CUDA runtime and driver. The dynamic linker then uses these libraries for every
// libcudart.so.13, libcudart.so.12 or libcuda.so.1 that a program or a library needs, even if RPATH or RUNPATH names
// another file. Symbol versions distinguish the two runtimes. hpe sets LD_LIBRARY_PATH for programs that open
// libcudart.so or libcuda.so by dlopen, PATH for programs that call nvcc to compile kernels, and further variables for
// Triton and CuPy.

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/command_line/program.h"
#include "apps/command_line/wrapping.h"
#include "apps/hpe/command.h"
#include "apps/hpe/installation.h"
#include "apps/hpe/report/report_command.h"
#include "hpe/hpe.hpp"
#include "runtime/base/options.h"
#include "runtime/base/own_process.h"

namespace hpe::cli {

namespace {

struct run_option {
  const char* group;
  const char* name;
  const char* value;  // the option's value as the help names it; nullptr: the option has no value, and sets the
                      // variable to on
  const char* variable;
  const char* sentence;
};

/// The value of an option that takes one of the words in the variable's row of options.def.
constexpr const char* word = "WORD";

constexpr const char* places = "Where CUDA programs run";
constexpr const char* modes = "What programs may use";
constexpr const char* records = "What hpe prints about programs";

constexpr std::array run_options{
    run_option{places, "--cuda", word, "HPE_CUDA",
               "on GPUs (driver), on soft devices (soft), or on GPUs if there is a driver (auto, the default)"},
    run_option{places, "--devices", "WHICH", "HPE_DEVICES", "the devices of hpe, as in soft:4"},
    run_option{modes, "--spread", nullptr, "HPE_SPREAD",
               "spread the kernels of a single-device CUDA program over all devices"},
    run_option{modes, "--oversubscribe", nullptr, "HPE_OVERSUBSCRIBE",
               "let a CUDA program allocate more memory than its device has"},
    run_option{modes, "--scope", word, "HPE_SCOPE",
               "device memory that kernels may use: all, args (only the memory to which their parameters point), or "
               "auto (the default): all, and with --oversubscribe on GPUs, args in device memory"},
    run_option{modes, "--strict", nullptr, "HPE_STRICT",
               "end with status 1 if launches or copies of the program were refused or failed"},
    run_option{
        records, "--check", nullptr, "HPE_CHECK",
        "report wrong synchronisation and wrong accesses of a CUDA program (on GPUs: only those that are certain)"},
    run_option{records, "--check-json", "FILE", "HPE_CHECK_JSON", "with --check, also write the findings as JSON"},
    run_option{records, "--check-sarif", "FILE", "HPE_CHECK_SARIF",
               "with --check, also write the findings as SARIF, for code scanning"},
    run_option{records, "--check-ignore", "FILE", "HPE_CHECK_IGNORE", "with --check, findings that are not reported"},
    run_option{records, "--explain", nullptr, "HPE_SPREAD_EXPLAIN",
               "with --spread, print at the end which kernels ran on several devices, and why others did not"},
    run_option{records, "--profile", nullptr, "HPE_PROFILE",
               "print at the end how long each kind of data movement took"},
    run_option{records, "--trace", "FILE", "HPE_TRACE",
               "a timeline of kernels, copies and faults, for ui.perfetto.dev"},
    run_option{records, "--report", "FILE", "HPE_REPORT",
               "an HTML page that shows where the time went, and when, with advice"},
    run_option{records, "--log", word, "HPE_LOG", "the messages of hpe on standard error; warn is the default"},
};

void set_variable(const char* name, const std::string& value) {
  ::setenv(name, value.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
}

/// Throws bad_input if a file cannot be written, because the user would otherwise learn of the error only after the
/// program has run.
void check_file(const std::string& option, const std::string& file) {
  try {
    command_line::check_outputs({name_of_output(file)});
  } catch (const command_line::bad_input& e) {
    throw command_line::bad_input(fmt::format("{}: {}", option, e.what()));
  }
}

std::vector<std::string> words_of(const run_option& o) {
  const std::vector<std::string_view>& words = describe_option(o.variable).values;
  return {words.begin(), words.end()};
}

/// Returns the value as the help names it, as in "all|args"; empty if the option has no value.
std::string value_in_help(const run_option& o) {
  if (o.value != word) return o.value != nullptr ? o.value : "";
  std::string text;
  for (const std::string& each : words_of(o)) text += (text.empty() ? "" : "|") + each;
  return text;
}

/// Throws bad_input for an empty file name, and for a value that is not in the list of the option.
void check_value(const run_option& o, const std::string& name, const std::string& value) {
  if (o.value == word) (void)command_line::place_among(name, value, words_of(o));
  if (value_in_help(o) == "FILE" && value.empty()) throw command_line::bad_input(name + " needs the name of a file");
}

/// Returns the options of a group. Each option sets its variable; the value of --report is also stored in `report`.
std::vector<command_line::option> rows_of(const char* group, std::string& report) {
  std::vector<command_line::option> all;
  for (const run_option& o : run_options) {
    if (std::string_view(o.group) != group) continue;
    all.push_back({o.name, value_in_help(o), fmt::format("{} ({})", o.sentence, o.variable),
                   [&](const std::string& name, const std::string& value) {
                     check_value(o, name, value);
                     set_variable(o.variable, o.value != nullptr ? value : "on");
                     if (name == "--report") report = value;
                   }});
  }
  return all;
}

/// Returns all options, and --help.
std::vector<command_line::option> rows(bool& help, std::string& report) {
  std::vector<command_line::option> all{command_line::help_option(help)};
  for (const char* const group : {places, modes, records})
    for (command_line::option& o : rows_of(group, report)) all.push_back(std::move(o));
  return all;
}

int print_usage() {
  bool help = false;
  std::string report;
  std::string text =
      "Usage: hpe run [options] -- <program> [arguments]\n\n"
      "Runs a program with hpe inside. The program is not changed: it may be a CUDA program linked in any way, an MPI "
      "program, or mpirun with either. Its exit status, signals and standard streams pass through unchanged. Without "
      "NVIDIA's driver, CUDA "
      "programs run on soft devices if they are linked with -cudart shared and contain PTX; `hpe doctor PROGRAM` "
      "checks this.\n";
  for (const char* const group : {places, modes, records})
    text += fmt::format("\n{}:\n\n{}", group, command_line::lines_of_help(rows_of(group, report)));
  command_line::print_help(text + command_line::lines_of_help({command_line::help_option(help)}) +
                           "\n"
                           "The variables in parentheses have the same effect. `hpe help HPE_CUDA` describes one, `hpe "
                           "help options` all.\n\n"
                           "Examples:\n"
                           "  hpe run -- ./program --size 1000\n"
                           "  mpirun -n 4 hpe run -- ./mpi_program\n"
                           "  hpe run --cuda soft --devices soft:4 -- ./program\n"
                           "  hpe run --spread --explain -- ./program_for_one_gpu\n"
                           "  hpe run --oversubscribe -- ./program_that_needs_more_memory\n"
                           "  hpe run --report page.html -- ./program\n"
                           "  hpe run --check -- ./program\n");
  return 0;
}

/// Returns two lists of files or folders, joined by a colon unless one list is empty.
std::string joined(const std::string& first, const std::string& second) {
  return first.empty() || second.empty() ? first + second : fmt::format("{}:{}", first, second);
}

/// Sets LD_PRELOAD to hpe's libraries, followed by the user's LD_PRELOAD. For soft devices, also sets LD_LIBRARY_PATH,
/// PATH, and the variables of CuPy and Triton. Throws hpe::error if the dynamic linker does not accept the path of a
/// library.
void preload(const options& chosen, bool on_soft_devices, bool driver) {
  const installation own = installation::own();
  std::string files;
  const auto add = [&](const std::filesystem::path& file) {
    if (!std::filesystem::exists(file)) return;
    if (file.native().find_first_of(": ") != std::string::npos)
      throw error(HPE_ERROR_NOT_SUPPORTED,
                  fmt::format("{} cannot be preloaded: the dynamic linker does not accept blanks or colons in a path",
                              file.string()));
    files = joined(files, file);
  };
  if (on_soft_devices && std::filesystem::exists(own.soft_runtime)) {
    const std::filesystem::path folder = own.soft_runtime.parent_path();
    add(own.soft_runtime);
    add(own.soft_runtime_of_cuda_12);
    add(own.soft_driver);
    set_variable("LD_LIBRARY_PATH", joined(folder, variable("LD_LIBRARY_PATH")));
    // Triton has two assemblers; which of them compiles for compute capability 9.0 depends on its version. CuPy's CUB
    // module contains a CUDA runtime of its own, whose calls fail on soft devices, which CuPy does not notice.
    // Therefore, CUPY_ACCELERATORS is set to an empty value, with which CuPy does not use CUB.
    const std::string assembler = folder / "triton" / "ptxas";
    std::vector<std::pair<const char*, std::string>> for_soft_devices = {{"TRITON_PTXAS_PATH", assembler},
                                                                         {"TRITON_PTXAS_BLACKWELL_PATH", assembler},
                                                                         {"CUPY_COMPILE_WITH_PTX", "1"},
                                                                         {"CUPY_ACCELERATORS", ""}};
    // CuPy looks for nvcc in the toolkit before it looks at PATH.
    if (!program_file("nvcc").empty()) {
      set_variable("PATH", joined(folder / "bin", variable("PATH")));
      for_soft_devices.emplace_back("NVCC", folder / "bin" / "nvcc");
    }
    for (const auto& [name, value] : for_soft_devices)
      if (variable(name).empty()) set_variable(name, value);
    // If there is a driver, hpe would use the GPUs by default.
    if (driver && chosen.devices.empty()) set_variable("HPE_DEVICES", "soft:2");
  } else if (!on_soft_devices && driver) {
    add(own.shim);
  }
  if (chosen.mpi != mpi_use::off) add(own.mpi);
  add(own.library);
  set_variable("LD_PRELOAD", joined(files, variable("LD_PRELOAD")));
}

/// Decides where CUDA programs run, and sets their environment. Returns 0, or prints an error and returns a status.
int prepare_cuda(const options& chosen) {
  const cuda_place place = chosen.cuda;
  const installation own = installation::own();
  for (const auto& [needs, file] :
       {std::pair(cuda_place::driver, own.shim), std::pair(cuda_place::soft, own.soft_runtime)}) {
    if (place != needs || std::filesystem::exists(file)) continue;
    fmt::print(stderr, "hpe run: --cuda {}, but this hpe was built without the CUDA toolkit: there is no {}\n",
               word_of(place), file.string());
    return cannot_run;
  }
  if (place == cuda_place::automatic && lacks_the_shim())
    fmt::print(stderr,
               "hpe run: there is a CUDA driver, but the file {} is missing: CUDA programs run on GPUs without hpe\n",
               own.shim.string());
  const bool driver = has_driver();
  if (place == cuda_place::driver && !driver) {
    fmt::print(stderr,
               "hpe run: --cuda driver is not possible, because there is no CUDA driver (libcuda.so.1, "
               "HPE_CUDA_DRIVER); --cuda soft needs no driver\n");
    return cannot_run;
  }
  const std::string &devices = chosen.devices, family = devices.substr(0, devices.find(':'));
  constexpr std::array families{"soft", "cuda"};
  if (!devices.empty() && std::find(families.begin(), families.end(), family) == families.end())
    return refuse("kind of device (--devices, HPE_DEVICES) named", family, {families.begin(), families.end()});
  if (place == cuda_place::soft && devices.starts_with("cuda")) {
    fmt::print(
        stderr,
        "hpe run: --cuda soft and HPE_DEVICES={} contradict each other; set HPE_DEVICES=soft:2, or unset HPE_DEVICES\n",
        devices);
    return command_line::usage_error;
  }
  const bool on_soft_devices = place == cuda_place::soft || !driver;
  preload(chosen, on_soft_devices, driver);
  return 0;
}

/// Returns the options of the program that hpe starts. Throws bad_input for a wrong value, before the program runs.
options options_of_program() {
  try {
    return options::from_environment();
  } catch (const error& e) {
    throw command_line::bad_input(e.what());
  }
}

/// For a program that is checked (HPE_CHECK), on the devices on which it would run. Throws bad_input if the options
/// exclude each other.
options options_of_checked_program(const options& chosen) {
  if (!chosen.check) return chosen;
  if (chosen.spread || chosen.oversubscribe == oversubscription::on)
    throw command_line::bad_input(
        "--check works neither with --spread nor with --oversubscribe: hpe runs launches of such programs in parts, "
        "whose "
        "accesses it does not record for each launch");
  // The user has chosen soft devices by name.
  if (chosen.cuda == cuda_place::automatic && chosen.devices.starts_with("soft")) set_variable("HPE_CUDA", "soft");
  // On soft devices, the record needs 15 times the address space, which therefore must be small.
  const bool on_gpus = variable("HPE_CUDA") != "soft" && has_driver();
  if (!on_gpus && variable("HPE_SEGMENT_SIZE").empty()) set_variable("HPE_SEGMENT_SIZE", "128G");
  // The processes of the run add their findings to the same files. A run within a run belongs to the outer one.
  if (variable("HPE_CHECK_SINCE").empty()) set_variable("HPE_CHECK_SINCE", std::to_string(time_of_files()));
  if (!chosen.check_json.empty()) check_file("--check-json", chosen.check_json);
  if (!chosen.check_sarif.empty()) check_file("--check-sarif", chosen.check_sarif);
  if (!chosen.check_ignore.empty() && ::access(chosen.check_ignore.c_str(), R_OK) != 0)
    throw command_line::bad_input(fmt::format("--check-ignore: the file {} cannot be read", chosen.check_ignore));
  return options_of_program();
}

int run_within(int argc, char** argv) {
  bool help = false;
  std::string report;
  const int at = command_line::read_before_program(rows(help, report), argc, argv);
  if (help) return print_usage();
  if (at >= argc) throw command_line::bad_input("the program is missing; see `hpe run --help`");
  const options chosen = options_of_checked_program(options_of_program());
  if (!chosen.trace.empty()) check_file("--trace", chosen.trace);
  if (const int status = prepare_cuda(chosen); status != 0) return status;
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
