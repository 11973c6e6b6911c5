#include "runtime/device/soft/owner/spawn.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <spawn.h>
#include <sys/prctl.h>
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
#include <limits>
#include <string_view>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/own_process.h"
#include "runtime/device/soft/shared/control.h"
#include "runtime/os/futex.h"
#include "runtime/os/signals.h"
#include "runtime/os/socket_message.h"

namespace hpe::device::soft {

namespace {

namespace fs = std::filesystem;

bool runnable(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0;
}

// Returns the environment without LD_PRELOAD, because libraries that the user preloads into the program must not be
// loaded into device processes.
std::vector<char*> device_environment() {
  std::vector<char*> variables;
  for (char** variable = environ; *variable != nullptr; ++variable)
    if (!std::string_view(*variable).starts_with("LD_PRELOAD=")) variables.push_back(*variable);
  variables.push_back(nullptr);
  return variables;
}

// Owns the file actions and attributes for posix_spawn.
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
    // The device is in a process group of its own, so that it does not receive signals of the terminal (for example of
    // Ctrl-C). Only the program receives them, and may continue.
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
  if (failure == ENOMEM)
    limit = limit_of(RLIMIT_AS, "the limit of address space (ulimit -v, in KiB)") +
            limit_of(RLIMIT_DATA, "the limit of data segments (ulimit -d, in KiB)");
  HPE_THROW(HPE_ERROR_INITIALIZATION, "device {} did not start: {}: {}{}", device, step, std::strerror(failure),
            limit);  // NOLINT(concurrency-mt-unsafe)
}

std::array<os::file_descriptor, 2> make_sockets(unsigned device) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    refuse_start(device, "socketpair", errno);
  return {os::file_descriptor(ends[0]), os::file_descriptor(ends[1])};
}

bool adopts_orphans() noexcept {
  int subreaper = 0;
  return ::getpid() == 1 || (::prctl(PR_GET_CHILD_SUBREAPER, &subreaper) == 0 && subreaper != 0);
}

// Makes a system call without the C library, with the instruction `syscall`.
long bare_call(long number, long a = 0, long b = 0, long c = 0, long d = 0) noexcept {
  long result = 0;
  register long fourth asm("r10") = d;
  asm volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth) : "rcx", "r11", "memory");
  return result;
}

}  // namespace

// The functions of this struct run in the new process, the keeper's parent, which has a separate stack but shares the
// memory of this process. The thread that called clone sleeps until `over` is set or the new process has ended, so the
// new process may use that thread's data, for example errno.
struct keeper_parent::start {
  const std::string& program;
  const spawn_plan& plan;
  char** arguments;
  char** variables;
  bool stays = false;
  pid_t keeper = -1;
  const char* call = "posix_spawn";  // the call that failed
  int failure = 0;
  os::futex_word over{0};

  void spawn() {
    failure = ::posix_spawn(&keeper, program.c_str(), plan.files(), plan.attributes(), arguments, variables);
  }

  // Starts the keeper. If this process then stays, it closes all its files, because a file that the program closes
  // later must not stay open here.
  __attribute__((no_stack_protector, no_sanitize("address", "thread", "undefined"))) static int run(void* self) {
    auto& what = *static_cast<start*>(self);
    what.spawn();
    if (!what.stays) return 0;
    const pid_t keeper = what.keeper;
    bare_call(SYS_close_range, 0, std::numeric_limits<unsigned>::max());
    const auto* const word = &what.over;
    what.over.store(1, std::memory_order_release);
    bare_call(SYS_futex, reinterpret_cast<long>(word), FUTEX_WAKE, 1);
    while (keeper > 0 && bare_call(SYS_wait4, keeper, 0, __WALL) == -EINTR) {
    }
    bare_call(SYS_exit_group, 0);
    return 0;
  }
};

// glibc's clone under another name. ThreadSanitizer would treat a call of `clone` as a fork and would clear its records
// of locks. Both processes share the memory with these records, so the program's records would be lost.
extern "C" int __clone(int (*run)(void*), void* stack, int flags, void* argument,
                       ...);  // NOLINT(bugprone-reserved-identifier)

void keeper_parent::start_keeper(start& what) {
  constexpr std::size_t stack_size = 64 << 10;
  const os::signals_blocked none_meanwhile;
  stack_.resize(stack_size / sizeof(std::max_align_t));
  what.stays = adopts_orphans();
  const int flags = CLONE_VM | (what.stays ? CLONE_UNTRACED : CLONE_VFORK);
  process_ = __clone(start::run, stack_.data() + stack_.size(), flags, &what);
  if (process_ < 0) {
    what.call = "clone";
    what.failure = errno;
    return;
  }
  while (what.stays && what.over.load(std::memory_order_acquire) == 0) os::futex_wait(what.over, 0);
  if (!what.stays) end();
}

void keeper_parent::end() noexcept {
  if (process_ <= 0) return;
  while (::waitpid(process_, nullptr, __WCLONE) < 0 && errno == EINTR) {
  }
  process_ = -1;
  stack_ = {};
}

std::string find_softd(const std::string& option) {
  if (!option.empty()) {
    HPE_REQUIRE(runnable(option), HPE_ERROR_INITIALIZATION,
                "HPE_SOFTD=\"{}\" is not a program that can be run; leave it empty to use the one beside the library",
                option);
    return fs::absolute(option);
  }
  return find_own_file("hpe-softd", {".", "../bin", "../libexec/hpe", "../../bin", "../../libexec/hpe"},
                       HPE_ERROR_INITIALIZATION, "HPE_SOFTD");
}

softd_process::softd_process(const std::string& program, unsigned device, const uvas_layout& layout)
    : program_(program), device_(device), owner_(::getpid()) {
  auto [control, devices_control] = make_sockets(device);
  auto [keeper, keepers_end] = make_sockets(device);
  const os::file_descriptor own = open_pidfd(owner_);
  if (!own) refuse_start(device, "pidfd_open", errno);

  // The arguments identify the device in lists of processes. With the arguments, the device can reserve the UVAS before
  // it receives any message.
  std::array<std::string, 5> words{program, std::to_string(device), fmt::format("{:#x}", layout.base),
                                   fmt::format("{:#x}", layout.size()), std::to_string(owner_)};
  std::array<char*, 6> arguments{};
  for (std::size_t i = 0; i < words.size(); ++i) arguments[i] = words[i].data();
  std::vector<char*> variables = device_environment();
  const spawn_plan plan(keepers_end.get());
  keeper_parent::start start{program, plan, arguments.data(), variables.data()};
  parent_.start_keeper(start);
  if (start.failure != 0) refuse_start(device, fmt::format("{} of {}", start.call, program), start.failure);

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
              "device {} did not start: {} ended at once, or is not the hpe-softd of this build", device_, program_);
  pid_ = report.pid;
  pidfd_ = std::move(descriptors[0]);
  // When the device's process is dead, the keeper's report arrives at once. If the keeper was killed, too, the report
  // never arrives, so the wait for it is limited to two seconds.
  constexpr timeval patience{2, 0};
  ::setsockopt(keeper_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
}

softd_process::~softd_process() {
  if (!keeper_ || reaped_ || ::getpid() != owner_) return;
  try {
    if (!pidfd_) try_twice([&] { await_start(); });
    kill();
    reap();
  } catch (const std::exception&) {  // no process was started, or the keeper kills the process when the socket closes
  }
}

void softd_process::kill() noexcept { ::syscall(SYS_pidfd_send_signal, pidfd_.get(), SIGKILL, nullptr, 0); }

std::string softd_process::reap() {
  keeper_report report;
  const auto receive = [&] {
    return os::receive_message(keeper_.get(), std::as_writable_bytes(std::span(&report, 1)));
  };
  std::size_t got = receive();
  if (got != sizeof report) {  // the device's process runs, or no keeper exists that could report its end
    kill();
    got = receive();
  }
  parent_.end();
  reaped_ = true;
  if (got != sizeof report) return "ended";
  try {
    if (report.code == CLD_EXITED) return fmt::format("exited with status {}", report.status);
    const char* name = ::sigabbrev_np(report.status);
    return fmt::format("was killed by signal {} (SIG{})", report.status, name == nullptr ? "?" : name);
  } catch (const std::bad_alloc&) {
    return "ended";
  }
}

}  // namespace hpe::device::soft
