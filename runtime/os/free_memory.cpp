#include "runtime/os/free_memory.h"

#include <fmt/core.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

namespace hpe::os {

namespace {

namespace fs = std::filesystem;

/// Returns the number after the word `name` at the start of a line of a file; nullopt if no line starts with this word.
std::optional<double> number_of(const fs::path& path, const std::string& name) {
  std::ifstream file(path);
  std::string word;
  double number = 0;
  for (std::string rest; file >> word >> number; std::getline(file, rest))
    if (word == name) return number;
  return std::nullopt;
}

/// Returns the number that a file consists of; nullopt if the file contains no number but, for example, "max".
std::optional<double> number_in(const fs::path& path) {
  double number = 0;
  return std::ifstream(path) >> number ? std::optional(number) : std::nullopt;
}

/// The names of a control group's files in the two versions of control groups.
struct names_of_files {
  const char *folder, *limit, *used, *reclaimable;
};
constexpr names_of_files version_1{"sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                                   "total_inactive_file"},
    version_2{"sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"};

/// Returns the number of bytes that processes of a control group can still allocate; infinity if the group has no
/// limit. Reclaimable pages of the page cache count as free, because the operating system gives them up first.
double free_in(const fs::path& group, const names_of_files& names) {
  const auto limit = number_in(group / names.limit), used = number_in(group / names.used);
  if (!limit || !used) return std::numeric_limits<double>::infinity();
  return std::max(0.0, *limit - *used + number_of(group / "memory.stat", names.reclaimable).value_or(0));
}

/// Returns how many bytes this process can still allocate within the limits of its control group and of all groups
/// above that group; infinity if no group has a limit.
free_bytes free_in_groups(const fs::path& root) {
  free_bytes least{std::numeric_limits<double>::infinity(), {}};
  const auto look = [&](const fs::path& group, const names_of_files& names) {
    const double free = free_in(root / names.folder / group, names);
    if (free < least.bytes) least = {free, fmt::format("control group /{}", group.string())};
  };
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // NUMBER:CONTROLLER,...:GROUP; version 2 has no controllers
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = fmt::format(",{},", line.substr(first + 1, second - first - 1));
    if (controllers != ",," && controllers.find(",memory,") == std::string::npos) continue;
    const names_of_files& names = controllers == ",," ? version_2 : version_1;
    fs::path group = fs::path(line.substr(second + 1)).relative_path();
    for (; !group.empty(); group = group.parent_path()) look(group, names);
    look({}, names);
  }
  return least;
}

}  // namespace

free_bytes free_memory(const fs::path& root) {
  const auto kibibytes = number_of(root / "proc/meminfo", "MemAvailable:");
  free_bytes in_groups = free_in_groups(root);
  if (kibibytes && *kibibytes * 1024.0 <= in_groups.bytes) return {*kibibytes * 1024.0, "the machine"};
  return in_groups;
}

}  // namespace hpe::os
