#include "tests/sweep/resources.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/sweep/injection.h"

namespace sweep {

namespace fs = std::filesystem;

namespace {

std::int64_t entries_of(const char* folder) {
  std::error_code ignored;
  return std::distance(fs::directory_iterator(folder, ignored), fs::directory_iterator());
}

// Counts the mappings of memory files and of files in /dev/shm. The C library's mappings (heaps, stacks) have no file
// and are not counted, because the C library maps and unmaps them by its own rules.
std::int64_t mappings_of_files() {
  std::ifstream in("/proc/self/maps");
  std::int64_t count = 0;
  for (std::string line; std::getline(in, line);)
    count += line.find("/memfd:") != std::string::npos || line.find("/dev/shm/") != std::string::npos ? 1 : 0;
  return count;
}

}  // namespace

std::map<int, pid_t> device_processes(pid_t of) {
  std::map<int, pid_t> result;
  const std::string owner = std::to_string(of);
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const pid_t process = std::atoi(entry.path().filename().c_str());
    if (process == 0) continue;
    std::ifstream in(entry.path() / "cmdline");
    std::vector<std::string> words;
    for (std::string word; std::getline(in, word, '\0');) words.push_back(word);
    if (words.size() == 5 && words[0].ends_with("hpe-softd") && words[4] == owner && words[1].front() != '-')
      result[std::atoi(words[1].c_str())] = process;
  }
  return result;
}

resources of_process() {
  const test_code here;
  resources result;
  result.descriptors = entries_of("/proc/self/fd");
  result.mappings = mappings_of_files();
  result.processes = static_cast<std::int64_t>(device_processes(::getpid()).size());
  return result;
}

std::string difference(const resources& before, const resources& after) {
  std::string result;
  const auto compare = [&](const char* what, std::int64_t was, std::int64_t now) {
    if (was != now)
      result +=
          std::string(result.empty() ? "" : ", ") + what + " " + std::to_string(was) + " -> " + std::to_string(now);
  };
  compare("descriptors", before.descriptors, after.descriptors);
  // There may be fewer mappings than before, because hpe may have removed mappings that it had kept for reuse.
  if (after.mappings > before.mappings) compare("mappings", before.mappings, after.mappings);
  compare("processes", before.processes, after.processes);
  compare("regions", before.regions, after.regions);
  compare("free staging buffers", before.buffers, after.buffers);
  compare("locked regions", before.locked, after.locked);
  for (std::size_t d = 0; d < std::min(before.device_memory.size(), after.device_memory.size()); ++d)
    if (after.device_memory[d] >= 0)
      compare(("free bytes of device " + std::to_string(d)).c_str(), before.device_memory[d], after.device_memory[d]);
  return result;
}

}  // namespace sweep
