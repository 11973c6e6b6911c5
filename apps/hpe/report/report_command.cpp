// In an MPI job (mpirun -n 4 hpe run --report page.html program), the hpe process of each rank writes the page from all
// parts that exist at that time, so the page of the last rank contains all parts. Each rank first removes the parts
// that the same rank wrote in an earlier job. Outside of MPI jobs, `hpe run` refuses a page that another run is
// writing.

#include "apps/hpe/report/report_command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <system_error>
#include <utility>

#include "apps/command_line/program.h"
#include "apps/command_line/report.h"
#include "apps/command_line/wrapping.h"
#include "apps/hpe/command.h"
#include "apps/hpe/report/report_parts.h"
#include "runtime/base/own_process.h"
#include "runtime/trace/report_part.h"

namespace hpe::cli {

namespace {

namespace fs = std::filesystem;

volatile std::sig_atomic_t program = 0;

/// Forwards the signals in `signals` to the program, except for SIGINT and SIGQUIT from a terminal, which reach the
/// program directly, because it is in the same process group. Between the constructor and begin() the signals are
/// blocked, so that no signal is lost while the program starts.
class forwarded_signals {
 public:
  forwarded_signals() {
    sigset_t all;
    ::sigemptyset(&all);
    for (const int s : signals) ::sigaddset(&all, s);
    ::sigprocmask(SIG_BLOCK, &all, &mask_);
  }
  ~forwarded_signals() {
    for (std::size_t i = 0; i < signals.size() && begun_; ++i) ::sigaction(signals[i], &actions_[i], nullptr);
    ::sigprocmask(SIG_SETMASK, &mask_, nullptr);
  }
  forwarded_signals(const forwarded_signals&) = delete;
  forwarded_signals& operator=(const forwarded_signals&) = delete;

  /// Returns the signal mask from before the constructor, which the program inherits.
  [[nodiscard]] const sigset_t& mask_of_program() const { return mask_; }

  /// Begins to forward signals to the child. The child must not be reaped before the destructor runs, because its
  /// process number could then belong to another process.
  void begin(pid_t child) {
    program = child;
    begun_ = true;
    for (std::size_t i = 0; i < signals.size(); ++i) {
      struct sigaction action {};
      action.sa_sigaction = forward;
      action.sa_flags = SA_SIGINFO;
      ::sigaction(signals[i], &action, &actions_[i]);
    }
    ::sigprocmask(SIG_SETMASK, &mask_, nullptr);
  }

 private:
  static void forward(int number, siginfo_t* about, void* /*context*/) {
    const bool from_terminal = about->si_code == SI_KERNEL && (number == SIGINT || number == SIGQUIT);
    const int before = errno;
    if (!from_terminal) ::kill(program, number);
    errno = before;
  }

  static constexpr std::array signals{SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGINT, SIGQUIT};
  sigset_t mask_{};
  bool begun_ = false;
  std::array<struct sigaction, signals.size()> actions_{};
};

/// Starts a program with this mask of signals. Returns the error number of posix_spawnp.
int spawn(pid_t& child, char** argv, const sigset_t& mask) {
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  ::posix_spawnattr_setsigmask(&attributes, &mask);
  const int why = ::posix_spawnp(&child, argv[0], nullptr, &attributes, argv, environ);
  ::posix_spawnattr_destroy(&attributes);
  return why;
}

std::string joined_words(char** argv) {
  std::string line = *argv;
  while (*++argv != nullptr) line.append(" ").append(*argv);
  return line;
}

std::string ending_of(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("ended by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));  // NOLINT: one thread
  return fmt::format("exit status {}", WEXITSTATUS(status));
}

/// The right of a process to make a page. The process locks the folder of the parts, which it creates if necessary.
class page_lock {
 public:
  page_lock() = default;
  ~page_lock() { close(); }
  page_lock(const page_lock&) = delete;
  page_lock& operator=(const page_lock&) = delete;

  /// Waits while another process has the right.
  void wait(const fs::path& folder) { take(folder, 0); }
  /// Returns false if another process has the right.
  [[nodiscard]] bool try_take(const fs::path& folder) { return take(folder, LOCK_NB); }

 private:
  // A process that ends removes the folder. So the folder may be gone when this process gets its lock.
  bool take(const fs::path& folder, int more) {
    for (;;) {
      ::mkdir(folder.c_str(), 0777);
      folder_ = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
      if (folder_ < 0) return true;  // without a lock; the page or its parts cannot be written either
      if (::flock(folder_, LOCK_EX | more) < 0 && errno == EWOULDBLOCK) return false;
      struct stat now {};
      if (::fstat(folder_, &now) < 0 || now.st_nlink != 0) return true;
      close();
    }
  }
  void close() noexcept {
    if (folder_ >= 0) ::close(std::exchange(folder_, -1));
  }
  int folder_ = -1;
};

/// Makes the page from the parts. If there are no parts, an earlier page of this name stays unchanged.
void make_page(const std::string& page, const std::string& command, const std::string& ending) {
  const fs::path folder = trace::folder_of_parts(page);
  const auto parts = read_parts(folder);
  const bool stays = parts.empty() && fs::exists(page) && fs::file_size(page) > 0;
  if (!stays) command_line::write_text(page_of(parts, command, ending), page);
  if (parts.empty())
    fmt::print(stderr, "hpe run: no process of the program used hpe, so {} {}\n", page,
               stays ? "stays as it was" : "is empty");
}

/// Removes the parts of earlier runs or of this run; in an MPI rank, only those of this rank.
void remove_parts(const fs::path& folder) {
  static const std::regex part(R"((-|\d+)\.\d+\.json)");
  const char* const own = rank_by_environment();
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename();
    if (std::regex_match(name, part) && (own == nullptr || name.starts_with(std::string(own) + ".")))
      fs::remove(entry.path(), ignored);
  }
}

/// Removes the parts and then the folder, unless it contains other files.
void remove_folder(const fs::path& folder) {
  remove_parts(folder);
  ::rmdir(folder.c_str());
}

/// Throws bad_input if the page cannot be written.
void check_page(const std::string& page) {
  if (fs::exists(page) && !fs::is_regular_file(page))
    throw command_line::bad_input("it is not a regular file, but the page must be one");
  command_line::check_outputs({page});
}

}  // namespace

int run_with_report(const std::string& page, char** argv) {
  const std::string place = fs::absolute(page);
  const fs::path folder = trace::folder_of_parts(place);
  try {
    check_page(place);
  } catch (const command_line::bad_input& e) {
    fmt::print(stderr, "hpe run: --report {}: {}\n", page, e.what());
    return command_line::usage_error;
  }
  const bool is_rank = rank_by_environment() != nullptr;
  page_lock mine;
  if (!is_rank && !mine.try_take(folder)) {
    fmt::print(stderr, "hpe run: --report {}: another run writes this page now; name another page\n", page);
    return command_line::usage_error;
  }
  remove_parts(folder);
  ::setenv("HPE_REPORT", place.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
  pid_t child = 0;
  {
    forwarded_signals forwarding;
    if (const int why = spawn(child, argv, forwarding.mask_of_program()); why != 0) {
      fmt::print(stderr, "hpe run: cannot run {}: {}\n", argv[0], std::strerror(why));  // NOLINT(concurrency-mt-unsafe)
      if (!is_rank) remove_folder(folder);
      return why == ENOENT ? not_found : cannot_run;
    }
    forwarding.begin(child);
    siginfo_t ended;
    while (::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT) < 0 && errno == EINTR) {
    }
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  bool written = true;
  try {
    if (is_rank) mine.wait(folder);
    make_page(place, joined_words(argv), ending_of(status));
    if (!is_rank) remove_folder(folder);
  } catch (const std::runtime_error& e) {
    written = false;
    fmt::print(stderr, "hpe run: {}; `hpe report {}` makes the page of the parts in {}\n", e.what(), page,
               folder.string());
  }
  if (!WIFSIGNALED(status)) return written || WEXITSTATUS(status) != 0 ? WEXITSTATUS(status) : command_line::failed;
  // The program has written its own core file; this process, which ends by the same signal, must not write one.
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  ::raise(WTERMSIG(status));
  constexpr int ended_by_signal = 128;
  return ended_by_signal + WTERMSIG(status);
}

int report(int argc, char** argv) {
  return command_line::guarded("hpe report", [&] {
    bool help = false;
    std::string page;
    const std::vector<command_line::option> table{
        {"PAGE", "", "the page to write; its parts are in PAGE.parts", command_line::to_text(page)},
        command_line::help_option(help)};
    command_line::read(table, argc, argv);
    if (help) {
      command_line::print_help(fmt::format(
          "Usage: hpe report PAGE\n\n"
          "Makes the page of the parts that processes have written to the folder PAGE.parts. `hpe run --report` does "
          "so\n"
          "itself; this command is for jobs on several machines, and for programs started with HPE_REPORT=PAGE.\n\n{}",
          command_line::lines_of_help(table)));
      return 0;
    }
    if (page.empty()) throw command_line::bad_input("the argument PAGE is missing; see `hpe report --help`");
    const std::string place = fs::absolute(page);
    const fs::path folder = trace::folder_of_parts(place);
    const auto parts = read_parts(folder);
    if (parts.empty()) {
      fmt::print(stderr, "hpe report: there are no parts of a report in {}\n", folder.string());
      return command_line::failed;
    }
    command_line::write_text(page_of(parts, parts.front().at("command"), fmt::format("{} parts", parts.size())), place);
    return 0;
  });
}

}  // namespace hpe::cli
