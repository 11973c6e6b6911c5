#include "runtime/device/soft/spawn.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/device/soft/control.h"

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
  explicit spawn_plan(int control) {
    ::posix_spawn_file_actions_init(&files_);
    ::posix_spawnattr_init(&attributes_);
    ::posix_spawn_file_actions_addopen(&files_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&files_, control, control_descriptor);
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

int open_pidfd(pid_t pid) { return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)); }

}  // namespace

os::file_descriptor open_own_pidfd() {
  os::file_descriptor own(open_pidfd(::getpid()));
  if (!own) throw_system_error("pidfd_open");
  return own;
}

std::string find_softd(const std::string& option) {
  if (!option.empty()) {
    HPE_REQUIRE(runnable(option), HPE_ERROR_INITIALIZATION,
                "HPE_SOFTD=\"{}\" is not a program that can be run; leave it empty to use the one beside the library",
                option);
    return fs::absolute(option);
  }
  std::vector<fs::path> folders;
  std::error_code ignored;
  Dl_info library{};
  if (::dladdr(reinterpret_cast<const void*>(&find_softd), &library) != 0)
    folders.push_back(fs::canonical(library.dli_fname, ignored).parent_path());
  folders.push_back(fs::read_symlink("/proc/self/exe", ignored).parent_path());

  std::string looked_in;
  for (const fs::path& folder : folders) {
    if (folder.empty()) continue;
    for (const char* relative : {".", "../bin", "../libexec/hpe", "../../bin", "../../libexec/hpe"}) {
      const fs::path candidate = (folder / relative / "hpe-softd").lexically_normal();
      if (runnable(candidate)) return candidate;
      looked_in.append(" ").append(candidate.parent_path().string());
    }
  }
  HPE_THROW(HPE_ERROR_INITIALIZATION,
            "hpe-softd, the program of soft devices, was not found in{}; HPE_SOFTD can name it", looked_in);
}

softd_process::softd_process(const std::string& program, unsigned device, const uvas_layout& layout)
    : owner_(::getpid()) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) throw_system_error("socketpair");
  control_ = os::file_descriptor(ends[0]);
  const os::file_descriptor far(ends[1]);

  // The arguments are for whoever lists processes, and for the device to take its address space first of all.
  std::array<std::string, 4> words{program, std::to_string(device), fmt::format("{:#x}", layout.base),
                                   fmt::format("{:#x}", layout.size())};
  std::array<char*, 5> arguments{words[0].data(), words[1].data(), words[2].data(), words[3].data(), nullptr};
  std::vector<char*> variables = device_environment();
  const spawn_plan plan(far.get());
  const int failure =
      ::posix_spawn(&pid_, program.c_str(), plan.files(), plan.attributes(), arguments.data(), variables.data());
  HPE_REQUIRE(failure == 0, HPE_ERROR_INITIALIZATION, "starting {} for device {}: {}", program, device,
              std::strerror(failure));  // NOLINT(concurrency-mt-unsafe)
  pidfd_ = os::file_descriptor(open_pidfd(pid_));
  if (!pidfd_) throw_system_error("pidfd_open of a soft device");
}

softd_process::~softd_process() {
  if (pidfd_.get() < 0 || reaped_ || ::getpid() != owner_) return;
  kill();
  reap();
}

void softd_process::kill() noexcept { ::syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGKILL, nullptr, 0); }

std::string softd_process::reap() {
  siginfo_t end{};
  int result = 0;
  do {
    result = ::waitid(P_PIDFD, static_cast<id_t>(pidfd_.get()), &end, WEXITED);
  } while (result != 0 && errno == EINTR);
  reaped_ = true;
  // The program may wait for children of its own in a way that takes ours as well, or ignore SIGCHLD.
  if (result != 0) return "ended";
  if (end.si_code == CLD_EXITED) return fmt::format("exited with status {}", end.si_status);
  const char* name = ::sigabbrev_np(end.si_status);
  return fmt::format("was killed by signal {} (SIG{})", end.si_status, name == nullptr ? "?" : name);
}

}  // namespace hpe::device::soft
