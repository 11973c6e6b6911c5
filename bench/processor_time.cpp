#include "bench/processor_time.h"

#include <sys/types.h>

#include <ctime>
#include <filesystem>
#include <fstream>

namespace hpe::bench {

namespace {

double seconds_on(clockid_t clock) {
  timespec t{};
  return clock_gettime(clock, &t) == 0 ? static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec) : 0;
}

}  // namespace

double processor_seconds() {
  double sum = seconds_on(CLOCK_PROCESS_CPUTIME_ID);
  std::error_code ignored;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task", ignored)) {
    std::ifstream children(thread.path() / "children");
    pid_t child = 0;
    while (children >> child) {
      clockid_t clock{};
      if (clock_getcpuclockid(child, &clock) == 0) sum += seconds_on(clock);
    }
  }
  return sum;
}

}  // namespace hpe::bench
