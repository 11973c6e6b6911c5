// The program replaces this one, so its exit status, signals, standard streams and process number are its own. What hpe
// is to it comes through the environment, which its children inherit: mpirun's as well.

#include <dlfcn.h>
#include <fmt/core.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "apps/hpe/command.h"
#include "hpe/hpe.hpp"

namespace hpe::cli {

namespace {

constexpr int cannot_run = 126;
constexpr int not_found = 127;  // both as shells have it

struct run_option {
  const char* name;
  const char* value;  // what the help calls it; nullptr: takes none and means "1"
  const char* variable;
  const char* sentence;
};

constexpr std::array options{
    run_option{"--devices", "WHICH", "HPE_DEVICES", "what hpe takes as devices"},
    run_option{"--scope", "WHICH", "HPE_SCOPE", "what kernels may use of the device memory that CPU code has touched"},
    run_option{"--profile", nullptr, "HPE_PROFILE", "tells at the end where the data's time went"},
    run_option{"--trace", "FILE", "HPE_TRACE", "a picture of what happened when, for ui.perfetto.dev"},
    run_option{"--log", "LEVEL", "HPE_LOG", "what hpe tells on standard error"},
};

int print_usage() {
  fmt::print(
      "usage: hpe run [options] -- <program> [arguments]\n\n"
      "Runs a program with hpe inside. The program is not changed: it may be a CUDA program linked in any way, an MPI\n"
      "program, or mpirun with either. Its exit status, signals and streams are its own.\n\n");
  for (const run_option& o : options)
    fmt::print("  {:<18}{} ({})\n",
               fmt::format("{}{}{}", o.name, o.value != nullptr ? " " : "", o.value != nullptr ? o.value : ""),
               o.sentence, o.variable);
  fmt::print("\n`hpe help options` tells more of the variables in parentheses, and of others.\n");
  return 0;
}

std::filesystem::path library() {
  Dl_info about{};
  if (::dladdr(reinterpret_cast<const void*>(&hpeGetOptions), &about) == 0)
    throw error(HPE_ERROR_INTERNAL, "libhpe.so is not found by one of its functions");
  return std::filesystem::canonical(about.dli_fname);
}

/// Whether a program would find a CUDA driver. Without one, nothing stands in its place: programs fail as they would.
bool has_driver() {
  const char* const wanted = std::getenv("HPE_CUDA_DRIVER");  // NOLINT(concurrency-mt-unsafe): one thread
  if (wanted != nullptr && *wanted != '\0') return ::access(wanted, R_OK) == 0;
  return ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL) != nullptr;
}

/// What the dynamic linker puts in front of a program, in this order; what the user preloads comes after.
std::string preloads() {
  const std::filesystem::path hpe = library();
  std::string result;
  const auto add = [&](const std::filesystem::path& file) {
    if (!std::filesystem::exists(file)) return;
    if (file.native().find_first_of(": ") != std::string::npos)
      throw error(HPE_ERROR_NOT_SUPPORTED,
                  fmt::format("{} cannot be preloaded: the dynamic linker takes no blank and no colon in a path",
                              file.string()));
    if (!result.empty()) result += ':';
    result += file;
  };
  if (has_driver()) add(hpe.parent_path() / "hpe" / "cuda" / "libcuda.so.1");
  add(hpe.parent_path() / "libhpe-mpi.so");
  add(hpe);
  const char* const before = std::getenv("LD_PRELOAD");  // NOLINT(concurrency-mt-unsafe)
  if (before != nullptr && *before != '\0') result += fmt::format(":{}", before);
  return result;
}

}  // namespace

int run_program(int argc, char** argv) {
  int at = 1;
  for (; at < argc && argv[at][0] == '-'; ++at) {
    const std::string_view word = argv[at];
    if (word == "--") {
      ++at;
      break;
    }
    if (word == "--help" || word == "-h") return print_usage();
    std::vector<std::string> known;
    const run_option* option = nullptr;
    for (const run_option& o : options) {
      known.emplace_back(o.name);
      if (word == o.name) option = &o;
    }
    if (option == nullptr) return refuse("option", word, known);
    if (option->value != nullptr && ++at == argc) {
      fmt::print(stderr, "hpe run: {} needs a value\n", option->name);
      return usage_error;
    }
    ::setenv(option->variable, option->value != nullptr ? argv[at] : "1", 1);  // NOLINT(concurrency-mt-unsafe)
  }
  if (at >= argc) {
    fmt::print(stderr, "hpe run: which program? `hpe run --help` tells more.\n");
    return usage_error;
  }
  ::setenv("LD_PRELOAD", preloads().c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
  ::execvp(argv[at], argv + at);
  const int why = errno;
  fmt::print(stderr, "hpe run: cannot run {}: {}\n", argv[at], std::strerror(why));  // NOLINT(concurrency-mt-unsafe)
  return why == ENOENT ? not_found : cannot_run;
}

}  // namespace hpe::cli
