// A benchmark is a program hpe-bench-NAME in the folder of `hpe`. With --describe, a benchmark prints a line about its
// measurements.

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <stdexcept>
#include <system_error>

#include "apps/hpe/command.h"
#include "apps/hpe/output_of.h"

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

std::string why_none() {
  return fmt::format(
      "{1} contains no program {0}NAME. In a build folder, this command builds the benchmarks: cmake --build . "
      "--target "
      "hpe-benchmarks",
      prefix, own_folder().string());
}

void list(const std::vector<std::string>& names) {
  fmt::print("Usage: hpe bench <name> [arguments]\n\n");
  if (names.empty()) fmt::print("None here: {}\n", why_none());
  std::size_t width = 10;
  for (const std::string& name : names) width = std::max(width, name.size());
  for (const std::string& name : names) {
    const std::string text = output_of({program_of(name), "--describe"}).text;
    fmt::print("  {:<{}}  {}\n", name, width, text.substr(0, text.find('\n')));
  }
}

}  // namespace

int bench(int argc, char** argv) {
  const std::vector<std::string> names = find_benchmarks();
  const std::string_view first = argc < 2 ? "" : argv[1];
  const bool is_help = first == "--help" || first == "-h";
  if (names.empty() && !is_help) throw std::runtime_error(why_none());
  if (argc < 2 || is_help) {
    list(names);
    return 0;
  }
  if (std::find(names.begin(), names.end(), argv[1]) == names.end()) return refuse("benchmark", argv[1], names);
  const std::string program = program_of(argv[1]);
  execv(program.c_str(), argv + 1);
  throw std::system_error(errno, std::generic_category(), program);
}

}  // namespace hpe::cli
