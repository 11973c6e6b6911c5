#include "tests/device/processes.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

namespace device_test {

namespace {

namespace fs = std::filesystem;

// Returns the contents of a file; empty if the file's process has ended.
std::string read_file(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace

std::vector<pid_t> soft_devices_of(pid_t owner) {
  std::map<int, pid_t> by_device;
  std::error_code vanished;
  for (const auto& entry : fs::directory_iterator("/proc", vanished)) {
    const pid_t pid = std::atoi(entry.path().filename().c_str());
    if (pid == 0) continue;
    // The arguments are: the program, the device's number ("-" in the keeper), the base and the size of the address
    // space, and the owner.
    std::istringstream arguments(read_file(entry.path() / "cmdline"));
    std::vector<std::string> words;
    for (std::string word; std::getline(arguments, word, '\0');) words.push_back(word);
    if (words.size() == 5 && words[0].ends_with("softd") && words[1] != "-" && words[4] == std::to_string(owner))
      by_device[std::atoi(words[1].c_str())] = pid;
  }
  std::vector<pid_t> result;
  for (const auto& [device, pid] : by_device) result.push_back(pid);
  return result;
}

bool exists(pid_t pid) { return ::kill(pid, 0) == 0; }

bool runs(pid_t pid) {
  const std::string stat = read_file("/proc/" + std::to_string(pid) + "/stat");
  const auto name_end = stat.rfind(')');
  return name_end != std::string::npos && stat[name_end + 2] != 'Z';
}

pid_t parent_of(pid_t pid) {
  const std::string stat = read_file("/proc/" + std::to_string(pid) + "/stat");
  // The line is: pid (name) state parent ...
  const auto name_end = stat.rfind(')');
  return name_end == std::string::npos ? 0 : std::atoi(stat.c_str() + name_end + 4);
}

pid_t group_of(pid_t pid) { return ::getpgid(pid); }

std::vector<std::string> open_files_of(pid_t pid) {
  std::vector<std::string> result;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/proc/" + std::to_string(pid) + "/fd", ignored))
    result.push_back(fs::read_symlink(entry.path(), ignored).string());
  return result;
}

std::vector<std::string> shared_memory_names_of(pid_t pid) {
  std::vector<std::string> result;
  for (const std::string& name : open_files_of(pid))
    if (name.starts_with("/dev/shm/")) result.push_back(name);
  std::ifstream mappings("/proc/" + std::to_string(pid) + "/maps");
  for (std::string line; std::getline(mappings, line);)
    if (const auto name = line.find("/dev/shm/"); name != std::string::npos) result.push_back(line.substr(name));
  return result;
}

}  // namespace device_test
