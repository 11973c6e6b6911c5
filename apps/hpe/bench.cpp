// A benchmark is a program hpe-bench-NAME beside this one. With --describe it prints a line about its measurements.

#include <fcntl.h>
#include <fmt/core.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "apps/hpe/command.h"

namespace hpe::cli {

namespace {

constexpr std::string_view prefix = "hpe-bench-";

std::filesystem::path own_folder() { return std::filesystem::read_symlink("/proc/self/exe").parent_path(); }

std::vector<std::string> find_benchmarks() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(own_folder())) {
    const std::string file = entry.path().filename();
    if (file.starts_with(prefix) && access(entry.path().c_str(), X_OK) == 0)
      names.push_back(file.substr(prefix.size()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string program_of(const std::string& name) { return own_folder() / (std::string(prefix) + name); }

/// The first line that a benchmark prints with --describe; empty if it prints none.
std::string describe(const std::string& name) {
  const std::string program = program_of(name);
  int ends[2];
  if (pipe(ends) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
  std::string describe_option = "--describe";
  char* arguments[] = {const_cast<char*>(program.c_str()), describe_option.data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  posix_spawn_file_actions_addclose(&actions, ends[1]);
  pid_t child = 0;
  const int failure = posix_spawn(&child, program.c_str(), &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string text;
  char buffer[256];
  for (ssize_t got = 0; (got = read(ends[0], buffer, sizeof(buffer))) > 0;) text.append(buffer, got);
  close(ends[0]);
  if (failure != 0) throw std::system_error(failure, std::generic_category(), program);
  waitpid(child, nullptr, 0);
  return text.substr(0, text.find('\n'));
}

int list(const std::vector<std::string>& names) {
  fmt::print("Usage: hpe bench <name> [arguments]\n\n");
  if (names.empty()) fmt::print("There are no benchmarks beside {}.\n", own_folder().string());
  std::size_t width = 10;
  for (const std::string& name : names) width = std::max(width, name.size());
  for (const std::string& name : names) fmt::print("  {:<{}}  {}\n", name, width, describe(name));
  return 0;
}

}  // namespace

int bench(int argc, char** argv) {
  const std::vector<std::string> names = find_benchmarks();
  const std::string_view first = argc < 2 ? "--help" : argv[1];
  if (first == "--help" || first == "-h") return list(names);
  if (std::find(names.begin(), names.end(), argv[1]) == names.end()) return refuse("benchmark", argv[1], names);
  const std::string program = program_of(argv[1]);
  execv(program.c_str(), argv + 1);
  throw std::system_error(errno, std::generic_category(), program);
}

}  // namespace hpe::cli
