#include "apps/hpe/doctor/trial.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <map>
#include <system_error>
#include <thread>

#include "apps/hpe/nvml.h"
#include "apps/hpe/running_processes.h"

namespace hpe::cli {

namespace {

using clock = std::chrono::steady_clock;

pid_t start(const std::vector<std::string>& program) {
  std::vector<std::string> words{"/proc/self/exe", "run", "--"};
  words.insert(words.end(), program.begin(), program.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  pid_t child = 0;
  const int failure = ::posix_spawn(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) throw std::system_error(failure, std::generic_category(), "hpe run");
  return child;
}

class gpu_peaks {
 public:
  gpu_peaks() : before_(reader_.read()) {}
  void look() {
    const std::vector<gpu_memory> now = reader_.read();
    for (const gpu_memory& before : before_)
      for (const gpu_memory& g : now)
        if (g.bus == before.bus && g.used > before.used) {
          memory_peak& peak = peaks_[g.bus];
          peak = {"", "GPU " + g.bus, std::max(peak.most, g.used - before.used), g.total};
        }
  }
  void add_to(std::vector<memory_peak>& all) const {
    for (const auto& [bus, peak] : peaks_) all.push_back(peak);
  }

 private:
  gpu_memory_reader reader_;
  std::vector<gpu_memory> before_;
  std::map<std::string, memory_peak> peaks_;
};

}  // namespace

trial try_out(const std::vector<std::string>& program) {
  constexpr auto between_samples = std::chrono::milliseconds(1);
  constexpr unsigned samples_between_looks = 20;
  gpu_peaks gpus;
  trial result;
  const clock::time_point began = clock::now();
  const pid_t child = start(program);
  device_memory_watch watch(child);
  pid_t ended = 0;
  for (unsigned n = 0; ended == 0; ++n) {
    if (n % samples_between_looks == 0) {
      watch.look_for_processes();
      gpus.look();
    }
    watch.sample();
    std::this_thread::sleep_for(between_samples);
    ended = ::waitpid(child, &result.status, WNOHANG);
  }
  if (ended < 0) throw std::system_error(errno, std::generic_category(), "waitpid");
  result.seconds = std::chrono::duration<double>(clock::now() - began).count();
  watch.sample();
  for (const device_memory_watch::peak& p : watch.peaks())
    result.peaks.push_back(
        {p.process.rank.empty() ? "process " + std::to_string(p.process.number) : "rank " + p.process.rank,
         p.device.name, p.device.used, p.device.memory});
  gpus.add_to(result.peaks);
  return result;
}

}  // namespace hpe::cli
