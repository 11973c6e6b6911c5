#include "runtime/device/soft/owner/spawn.h"

#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/own_folders.h"
#include "runtime/device/soft/shared/control.h"
#include "runtime/os/message.h"
#include "runtime/os/signals.h"

namespace hpe::device::soft {

namespace {

namespace fs = std::filesystem;

bool runnable(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0;
}

// What is preloaded into the program is not meant for its devices.
std::vector<char*> device_environment() {
  std::vector<char*> variables;
  for (char** variable = environ; *variable != nullptr; ++variable)
    if (!std::string_view(*variable).starts_with("LD_PRELOAD=")) variables.push_back(*variable);
  variables.push_back(nullptr);
  return variables;
}

// Owns the two descriptions that posix_spawn takes.
class spawn_plan {
 public:
  explicit spawn_plan(int socket) {
    ::posix_spawn_file_actions_init(&files_);
    ::posix_spawnattr_init(&attributes_);
    ::posix_spawn_file_actions_addopen(&files_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&files_, socket, control_descriptor);
    ::posix_spawn_file_actions_addclosefrom_np(&files_, control_descriptor + 1);

    sigset_t signals;
    sigemptyset(&signals);
    ::posix_spawnattr_setsigmask(&attributes_, &signals);
    sigfillset(&signals);
    ::posix_spawnattr_setsigdefault(&attributes_, &signals);
    // A group of its own: what the terminal sends is for the program to decide about.
    ::posix_spawnattr_setpgroup(&attributes_, 0);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  spawn_plan(const spawn_plan&) = delete;
  spawn_plan& operator=(const spawn_plan&) = delete;
  ~spawn_plan() {
    ::posix_spawnattr_destroy(&attributes_);
    ::posix_spawn_file_actions_destroy(&files_);
  }

  [[nodiscard]] const posix_spawn_file_actions_t* files() const { return &files_; }
  [[nodiscard]] const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t files_;
  posix_spawnattr_t attributes_;
};

os::file_descriptor open_pidfd(pid_t pid) {
  return os::file_descriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

[[noreturn]] void refuse_start(unsigned device, const std::string& step, int failure) {
  const auto limit_of = [](auto resource, const char* name) {
    rlimit limit{};
    ::getrlimit(resource, &limit);
    return limit.rlim_cur == RLIM_INFINITY ? std::string() : fmt::format("; {} allows {}", name, limit.rlim_cur);
  };
  std::string limit;
  if (failure == EAGAIN) limit = limit_of(RLIMIT_NPROC, "the limit of processes (ulimit -u)");
  if (failure == EMFILE) limit = limit_of(RLIMIT_NOFILE, "the limit of open files (ulimit -n)");
  if (failure == ENOMEM) limit = limit_of(RLIMIT_AS, "the limit of address space (ulimit -v, in KiB)");
  HPE_THROW(HPE_ERROR_INITIALIZATION, "device {} did not start: {}: {}{}", device, step, std::strerror(failure),
            limit);  // NOLINT(concurrency-mt-unsafe)
}

std::array<os::file_descriptor, 2> make_sockets(unsigned device) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    refuse_start(device, "socketpair", errno);
  return {os::file_descriptor(ends[0]), os::file_descriptor(ends[1])};
}

struct program_start {
  const std::string& program;
  const spawn_plan& plan;
  char** arguments;
  char** variables;
  pid_t pid = -1;
  int failure = 0;
};

int start_program(void* argument) {
  auto& what = *static_cast<program_start*>(argument);
  what.failure = ::posix_spawn(&what.pid, what.program.c_str(), what.plan.files(), what.plan.attributes(),
                               what.arguments, what.variables);
  return 0;
}

// Starts the program as the child of a process that ends at once. That process shares this one's memory and is no
// child that wait() finds or that SIGCHLD tells of: its exit signal is 0, and it does not call exec, which would
// change that.
void start_as_orphan(program_start& what) {
  constexpr std::size_t stack_size = 64 << 10;
  const os::signals_blocked none_meanwhile;
  std::vector<std::max_align_t> stack(stack_size / sizeof(std::max_align_t));
  const int between = ::clone(start_program, stack.data() + stack.size(), CLONE_VM | CLONE_VFORK, &what);
  if (between < 0) {
    what.failure = errno;
    return;
  }
  while (::waitpid(between, nullptr, __WCLONE) < 0 && errno == EINTR) {
  }
}

}  // namespace

std::string find_softd(const std::string& option) {
  if (!option.empty()) {
    HPE_REQUIRE(runnable(option), HPE_ERROR_INITIALIZATION,
                "HPE_SOFTD=\"{}\" is not a program that can be run; leave it empty to use the one beside the library",
                option);
    return fs::absolute(option);
  }
  std::string looked_in;
  for (const std::string& folder : own_folders()) {
    for (const char* relative : {".", "../bin", "../libexec/hpe", "../../bin", "../../libexec/hpe"}) {
      const fs::path candidate = (fs::path(folder) / relative / "hpe-softd").lexically_normal();
      if (runnable(candidate)) return candidate;
      looked_in.append(" ").append(candidate.parent_path().string());
    }
  }
  HPE_THROW(HPE_ERROR_INITIALIZATION,
            "hpe-softd, the program of soft devices, was not found in{}; HPE_SOFTD can name it", looked_in);
}

softd_process::softd_process(const std::string& program, unsigned device, const uvas_layout& layout)
    : program_(program), device_(device), owner_(::getpid()) {
  auto [control, devices_control] = make_sockets(device);
  auto [keeper, keepers_end] = make_sockets(device);
  const os::file_descriptor own = open_pidfd(owner_);
  if (!own) refuse_start(device, "pidfd_open", errno);

  // The arguments are for whoever lists processes, and for the device to take its address space first of all.
  std::array<std::string, 5> words{program, std::to_string(device), fmt::format("{:#x}", layout.base),
                                   fmt::format("{:#x}", layout.size()), std::to_string(owner_)};
  std::array<char*, 6> arguments{};
  for (std::size_t i = 0; i < words.size(); ++i) arguments[i] = words[i].data();
  std::vector<char*> variables = device_environment();
  const spawn_plan plan(keepers_end.get());
  program_start start{program, plan, arguments.data(), variables.data()};
  start_as_orphan(start);
  if (start.failure != 0) refuse_start(device, fmt::format("starting {}", program), start.failure);
  keeper_pidfd_ = open_pidfd(start.pid);

  const std::array<int, 2> descriptors{devices_control.get(), own.get()};
  os::send_message(keeper.get(), std::as_bytes(std::span(&owner_, 1)), descriptors);
  control_ = std::move(control);
  struct stat about {};
  if (::fstat(control_.get(), &about) == 0) control_inode_ = about.st_ino;
  keeper_ = std::move(keeper);
}

bool softd_process::control_is_open() const noexcept {
  struct stat about {};
  return ::fstat(control_.get(), &about) == 0 && about.st_ino == control_inode_;
}

void softd_process::await_start() {
  keeper_report report;
  std::vector<os::file_descriptor> descriptors;
  const std::size_t got =
      os::receive_message(keeper_.get(), std::as_writable_bytes(std::span(&report, 1)), descriptors);
  HPE_REQUIRE(got == sizeof report && descriptors.size() == 1, HPE_ERROR_INITIALIZATION,
              "device {} did not start: {} ended at once, or is no hpe-softd of this build", device_, program_);
  pid_ = report.pid;
  pidfd_ = std::move(descriptors[0]);
  // The report of the end comes at once when the process is dead, or not at all if somebody killed the keeper too.
  constexpr timeval patience{2, 0};
  ::setsockopt(keeper_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
}

softd_process::~softd_process() {
  if (!keeper_ || reaped_ || ::getpid() != owner_) return;
  try {
    if (!pidfd_) await_start();
    kill();
    reap();
  } catch (const error&) {  // there is no process
  }
}

void softd_process::kill() noexcept { ::syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGKILL, nullptr, 0); }

std::string softd_process::reap() {
  keeper_report report;
  std::vector<os::file_descriptor> none;
  const auto receive = [&] {
    return os::receive_message(keeper_.get(), std::as_writable_bytes(std::span(&report, 1)), none);
  };
  std::size_t got = receive();
  if (got != sizeof report) {  // the device lives, or nobody is left to report its end
    kill();
    got = receive();
  }
  siginfo_t ignored{};
  ::waitid(P_PIDFD, static_cast<id_t>(keeper_pidfd_.get()), &ignored, WEXITED);  // fails at once if it is no child
  reaped_ = true;
  if (got != sizeof report) return "ended";
  if (report.code == CLD_EXITED) return fmt::format("exited with status {}", report.status);
  const char* name = ::sigabbrev_np(report.status);
  return fmt::format("was killed by signal {} (SIG{})", report.status, name == nullptr ? "?" : name);
}

}  // namespace hpe::device::soft
