// Starts the processes that run a sweep, reads their reports, and kills the processes that hang.

#include <dlfcn.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/sweep/resources.h"
#include "tests/sweep/sweep.h"

namespace sweep {

namespace {

namespace fs = std::filesystem;
using clock = std::chrono::steady_clock;

// A run normally takes milliseconds. After `slow`, it counts as hung if all threads of the process and of its devices
// sleep. If some threads run, other load may be slowing the run down, so the run counts as hung only after the
// processes have used `stuck` of processor time, or after `late`.
constexpr std::chrono::seconds slow{2};
constexpr std::chrono::seconds stuck{15};
constexpr std::chrono::minutes late{5};

std::string first_line(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line, '\n');
  return line;
}

// Whether every thread of a process sleeps.
bool asleep(pid_t process) {
  std::error_code ignored;
  for (const auto& task : fs::directory_iterator("/proc/" + std::to_string(process) + "/task", ignored)) {
    const std::string about = first_line(task.path() / "stat");
    const auto state = about.rfind(") ");  // the state follows the name
    if (state != std::string::npos && about.compare(state + 2, 1, "S") != 0) return false;
  }
  return true;
}

std::vector<pid_t> members_of(pid_t group) {
  std::vector<pid_t> members;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/proc", ignored)) {
    const pid_t process = std::atoi(entry.path().filename().c_str());
    if (process != 0 && ::getpgid(process) == group) members.push_back(process);
  }
  return members;
}

// The processes of a group and of their devices.
std::vector<pid_t> watched_of(pid_t group) {
  std::vector<pid_t> watched = members_of(group);
  for (const pid_t owner : members_of(group))
    for (const auto& [device, process] : device_processes(owner)) watched.push_back(process);
  return watched;
}

// The processor time that these processes have used so far.
std::chrono::milliseconds time_of(const std::vector<pid_t>& processes) {
  double ticks = 0;
  for (const pid_t process : processes) {
    const std::string about = first_line("/proc/" + std::to_string(process) + "/stat");
    const auto name_end = about.rfind(')');
    if (name_end == std::string::npos) continue;
    std::istringstream fields(about.substr(name_end + 1));
    std::string skipped;
    for (int n = 0; n < 11; ++n) fields >> skipped;  // the fields from the state to the page faults
    double user = 0, system = 0;
    if (fields >> user >> system) ticks += user + system;
  }
  return std::chrono::milliseconds(
      static_cast<std::int64_t>(ticks * 1000 / static_cast<double>(::sysconf(_SC_CLK_TCK))));
}

// Whether all processes of a group and of their devices sleep at each of several checks.
bool stays_asleep(pid_t group) {
  constexpr int looks = 20;
  constexpr std::chrono::milliseconds between{25};
  const std::vector<pid_t> watched = watched_of(group);
  for (int i = 0; i < looks; ++i) {
    if (!std::all_of(watched.begin(), watched.end(), asleep)) return false;
    std::this_thread::sleep_for(between);
  }
  return true;
}

// Prints where each thread of a process waits: the kernel's function and the system call, or the call stacks by gdb if
// HPE_SWEEP_GDB is set.
void print_threads(pid_t process) {
  const std::string debugger = "gdb -p " + std::to_string(process) +
                               " -batch -ex 'set pagination off' -ex 'thread apply all bt 14' 2>/dev/null "
                               "| grep -E '^(#|Thread)'";
  if (std::getenv("HPE_SWEEP_GDB") != nullptr && std::system(debugger.c_str()) == 0) return;
  for (const auto& task : fs::directory_iterator("/proc/" + std::to_string(process) + "/task"))
    std::printf("    %s in %s, system call %s\n", first_line(task.path() / "comm").c_str(),
                first_line(task.path() / "wchan").c_str(), first_line(task.path() / "syscall").c_str());
}

// Prints the stack of the call that failed. The process is a fork of this driver, so the addresses are the same.
void print_stack(const note& from) {
  std::fflush(stdout);
  for (int i = 2; i < from.depth; ++i) {
    Dl_info object{};
    if (::dladdr(from.frames[i], &object) == 0) continue;
    char command[512];
    std::snprintf(command, sizeof command,
                  "addr2line -f -C -s -e %s %#lx | head -1 | sed -n 's/^/      /p' | grep hpe::", object.dli_fname,
                  std::uintptr_t(from.frames[i]) - std::uintptr_t(object.dli_fbase) - 1);
    (void)!std::system(command);
  }
}

struct process {
  pid_t id = 0;
  int from = -1;
};

process start(const sweep_of& which, note* noted) {
  int ends[2];
  if (::pipe(ends) != 0) std::exit(3);
  std::fflush(nullptr);
  const pid_t id = ::fork();
  if (id == 0) {
    ::close(ends[0]);
    // Makes a separate process group, which will also contain the other processes of the scenario.
    ::setpgid(0, 0);
    injected().note_at(noted);
    ::_exit(run_sweep(which, ends[1]));
  }
  ::close(ends[1]);
  return {id, ends[0]};
}

// Reads the lines of a report: each line without its newline, until the process closes the pipe or the deadline has
// passed.
class lines {
 public:
  explicit lines(int from) : from_(from) {}

  enum class outcome { line, ended, late };
  outcome next(std::string& line, clock::time_point deadline) {
    for (;;) {
      const auto end = rest_.find('\n');
      if (end != std::string::npos) {
        line = rest_.substr(0, end);
        rest_.erase(0, end + 1);
        return outcome::line;
      }
      // The deadline counts only if there is nothing to read, because this process itself may not have run for a while.
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - clock::now()).count();
      pollfd readable{from_, POLLIN, 0};
      if (::poll(&readable, 1, static_cast<int>(std::max<std::int64_t>(left, 0))) == 0) return outcome::late;
      char buffer[4096];
      const ssize_t n = ::read(from_, buffer, sizeof buffer);
      if (n <= 0) return outcome::ended;
      rest_.append(buffer, static_cast<std::size_t>(n));
    }
  }

 private:
  int from_;
  std::string rest_;
};

}  // namespace

void reporter::line(const std::string& text) const {
  const std::string whole = text + "\n";
  for (std::size_t at = 0; at < whole.size();) {
    const ssize_t n = ::write(to_, whole.data() + at, whole.size() - at);
    if (n <= 0) ::_exit(3);
    at += static_cast<std::size_t>(n);
  }
}

tally& tally::operator+=(const tally& other) {
  calls += other.calls;
  failures += other.failures;
  findings += other.findings;
  hangs += other.hangs;
  crashes += other.crashes;
  return *this;
}

tally drive(const sweep_of& given, const chosen_calls& which_calls, bool verbose) {
  tally result;
  sweep_of which = given;
  std::vector<std::uint64_t> calls;
  if (which_calls.most != 0 || which_calls.by_stack) {
    sweep_of none = given;
    none.k = sweep_of::none;
    void* const shared =
        ::mmap(nullptr, sizeof(call_stacks), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    auto* const stacks = new (shared) call_stacks;
    injected().record_at(which_calls.by_stack ? stacks : nullptr);
    const std::uint64_t count = drive(none, {}, verbose).calls;
    injected().record_at(nullptr);
    calls = stacks->first_and_last();
    ::munmap(shared, sizeof(call_stacks));
    if (which_calls.by_stack) {
      which.calls = &calls;
      which.k = which.after(given.k - 1);
    } else {
      which.stride = std::max<std::uint64_t>(1, count / which_calls.most);
    }
  }
  sweep_of next = which;
  // Shared memory in which the process describes the call that it makes fail. The driver reads the description if the
  // process can no longer report the call.
  auto* const noted =
      static_cast<note*>(::mmap(nullptr, sizeof(note), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  const auto print = [&](std::uint64_t k, const std::string& what) {
    std::printf("%s %s %s, call %lu: %s\n", which.scenario, name_of(which.kind),
                which.first == order::host_first ? "host first" : "devices first", k, what.c_str());
    std::fflush(stdout);
  };
  for (bool done = false; !done;) {
    const process p = start(next, noted);
    lines in(p.from);
    std::uint64_t at = 0;
    bool replaced = false;
    auto begun = clock::now();
    auto used_before = std::chrono::milliseconds::max();  // when the run was first found slow
    auto next_look = begun + slow;
    bool hung = false;
    std::string line;
    for (;;) {
      const auto outcome = in.next(line, next_look);
      if (outcome == lines::outcome::ended) break;
      if (outcome == lines::outcome::late) {
        const std::chrono::milliseconds used = time_of(watched_of(p.id));
        used_before = std::min(used_before, used);
        const bool may_be_slow = clock::now() < begun + late && used - used_before < stuck;
        if (may_be_slow && !stays_asleep(p.id)) {
          next_look = clock::now() + slow / 4;
          continue;
        }
        ++result.hangs;
        hung = true;
        print(at, std::string(noted->text) + ": HANGS; its threads:");
        print_threads(p.id);
        if (verbose) print_stack(*noted);
        break;
      }
      char* rest = nullptr;
      const std::uint64_t number = std::strtoull(line.c_str() + line.find(' '), &rest, 10);
      if (line.starts_with("at ")) {
        if (at != 0) ++result.failures;
        at = number;
        begun = clock::now();
        used_before = std::chrono::milliseconds::max();
        next_look = begun + slow;
      } else if (line.starts_with("finding ")) {
        ++result.findings;
        print(number, rest);
        if (verbose) print_stack(*noted);
      } else if (line.starts_with("again ")) {
        ++result.failures;
        next.k = number;
        replaced = true;
      } else if (line.starts_with("done ")) {
        result.calls = number;
        done = true;
      }
    }
    // The devices of the process end with it in any case.
    if (!done && !replaced) ::kill(p.id, SIGKILL);
    int status = 0;
    ::waitpid(p.id, &status, 0);
    ::kill(-p.id, SIGKILL);
    ::close(p.from);
    if ((done || replaced) && !WIFSIGNALED(status)) continue;
    if (at == 0) {
      ++result.crashes;
      print(0, "the process ended before it began");
      break;
    }
    if (!hung) {
      ++result.crashes;
      print(at, std::string(noted->text) + (WIFSIGNALED(status)
                                                ? std::string(": ENDED by signal ") + ::strsignal(WTERMSIG(status))
                                                : ": ENDED with status " + std::to_string(WEXITSTATUS(status))));
      if (verbose) print_stack(*noted);
    }
    if (done || replaced) continue;
    ++result.failures;
    next.k = which.after(at);
  }
  ::munmap(noted, sizeof(note));
  return result;
}

}  // namespace sweep
