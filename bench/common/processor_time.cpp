#include "bench/common/processor_time.h"

#include <sys/types.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>

namespace hpe::bench {

namespace {

namespace fs = std::filesystem;

double seconds_on(clockid_t clock) {
  timespec t{};
  return clock_gettime(clock, &t) == 0 ? static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec) : 0;
}

// Returns the process that a pidfd refers to; 0 if the descriptor is not a pidfd. description: the descriptor's file in
// /proc/self/fdinfo.
pid_t process_behind(const fs::path& description) {
  std::ifstream in(description);
  pid_t process = 0;
  for (std::string word; in >> word;)
    if (word == "Pid:") in >> process;
  return process;
}

bool is_soft_device(pid_t process) {
  std::string name;
  std::ifstream(fs::path("/proc") / std::to_string(process) / "comm") >> name;
  return name == "hpe-softd";
}

}  // namespace

// The processor time of this process, as Linux counts it, does not include the soft devices, because they are not its
// children. This process has a pidfd of each soft device, which names the soft device's process.
double processor_seconds() {
  double sum = 0;
  std::error_code ignored;
  for (const auto& file : fs::directory_iterator("/proc/self/fdinfo", ignored)) {
    const pid_t process = process_behind(file.path());
    clockid_t clock{};
    if (process > 0 && is_soft_device(process) && clock_getcpuclockid(process, &clock) == 0) sum += seconds_on(clock);
  }
  return sum + seconds_on(CLOCK_PROCESS_CPUTIME_ID);
}

}  // namespace hpe::bench
