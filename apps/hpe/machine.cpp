#include "apps/hpe/machine.h"

#include <dlfcn.h>
#include <fmt/core.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <limits>

#include "apps/hpe/installation.h"
#include "runtime/base/options.h"

namespace hpe::cli {

namespace {

constexpr double mebi = 1 << 20, gibi = 1 << 30, all = std::numeric_limits<double>::infinity();

std::optional<double> resource(__rlimit_resource_t which) {
  rlimit found{};
  if (::getrlimit(which, &found) != 0 || found.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return static_cast<double>(found.rlim_cur);
}

/// Returns the first number of a file under /proc/sys; nullopt if it cannot be read.
std::optional<double> setting(const char* path) {
  double value = 0;
  if (!(std::ifstream(path) >> value)) return std::nullopt;
  return value;
}

std::optional<double> size_of_file_system(const char* path) {
  struct statvfs found {};
  if (::statvfs(path, &found) != 0) return std::nullopt;
  return static_cast<double>(found.f_blocks) * static_cast<double>(found.f_frsize);
}

std::string in_words(double value, bool bytes) {
  static constexpr std::array units{"bytes", "KiB", "MiB", "GiB", "TiB"};
  if (!bytes) return fmt::format("{:.0f}", value);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < units.size(); ++unit) value /= 1024;
  return fmt::format("{:.{}f} {}", value, unit == 0 || value >= 100 ? 0 : 1, units[unit]);
}

std::string first_line_of(const std::filesystem::path& path) {
  std::string line;
  std::ifstream file(path);
  std::getline(file, line);
  return line;
}

}  // namespace

limit judge(const judged& j) {
  if (!j.value) return {j.name, "unlimited", ""};
  return {j.name, in_words(*j.value, j.bytes), *j.value < j.enough ? j.advice : ""};
}

std::vector<limit> limits_of_machine() {
  const std::array all_judged{
      judged{"vm.max_map_count", setting("/proc/sys/vm/max_map_count"), 1 << 20, false,
             "large allocations are protected as a whole, so one touch by the CPU moves a whole allocation: "
             "sysctl vm.max_map_count=1048576"},
      judged{"locked memory", resource(RLIMIT_MEMLOCK), 64 * mebi, true,
             "host memory cannot be pinned for GPUs and network cards: ulimit -l unlimited"},
      judged{"/dev/shm", size_of_file_system("/dev/shm"), gibi, true,
             "MPI ranks on one machine need shared memory in /dev/shm: start a container with --shm-size=1g"},
      judged{"open files", resource(RLIMIT_NOFILE), 1024, false, "several devices and ranks need more: ulimit -n 4096"},
      judged{"processes", resource(RLIMIT_NPROC), 512, false,
             "each soft device is a process, and the threads of all of the user's programs count towards this limit: "
             "ulimit -u 4096"},
      judged{"data segment", resource(RLIMIT_DATA), all, true,
             "hpe's tables, buffers and thread stacks count towards this limit: ulimit -d unlimited"},
      judged{"address space", resource(RLIMIT_AS), all, true,
             "hpe reserves more address space than it uses: ulimit -v unlimited, or a smaller HPE_SEGMENT_SIZE"},
      judged{"size of files", resource(RLIMIT_FSIZE), all, true,
             "hpe's large sparse files exceed this limit: ulimit -f unlimited"},
  };
  std::vector<limit> limits;
  for (const judged& j : all_judged) limits.push_back(judge(j));
  if (setting("/proc/sys/vm/overcommit_memory") == 2)
    limits.push_back({"vm.overcommit_memory", "2",
                      "the address space that hpe reserves is counted as used: sysctl vm.overcommit_memory=0"});
  return limits;
}

std::string version_of_cuda() {
  const std::string named = options::valid_in_environment().cuda_driver;
  void* const driver = ::dlopen(named.empty() ? "libcuda.so.1" : named.c_str(), RTLD_LAZY | RTLD_LOCAL);
  auto* const get =
      driver != nullptr ? reinterpret_cast<int (*)(int*)>(::dlsym(driver, "cuDriverGetVersion")) : nullptr;
  int version = 0;
  if (get == nullptr || get(&version) != 0) return "";
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

std::vector<gpu> gpus_of_machine(const std::filesystem::path& root) {
  std::vector<gpu> found;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(root / "proc/driver/nvidia/gpus", none)) {
    const std::string bus = entry.path().filename();
    gpu g{"", bus, "", "", -1};
    std::ifstream information(entry.path() / "information");
    for (std::string line; std::getline(information, line);)
      if (line.starts_with("Model:")) g.model = line.substr(std::min(line.find_first_not_of(" \t", 6), line.size()));
    const std::filesystem::path device = root / "sys/bus/pci/devices" / bus;
    g.link_speed = first_line_of(device / "current_link_speed");
    g.link_width = first_line_of(device / "current_link_width");
    std::ifstream(device / "numa_node") >> g.numa_node;
    found.push_back(g);
  }
  std::sort(found.begin(), found.end(), [](const gpu& a, const gpu& b) { return a.bus < b.bus; });
  return found;
}

}  // namespace hpe::cli
