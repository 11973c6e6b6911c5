// The table is drawn with plain escape sequences on the terminal's alternate screen, so that the terminal shows its
// former content when the command ends.

#include <fmt/core.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <thread>

#include "apps/command_line/program.h"
#include "apps/command_line/wrapping.h"
#include "apps/hpe/command.h"
#include "apps/hpe/running_processes.h"

namespace hpe::cli {

namespace {

using clock = std::chrono::steady_clock;
constexpr std::chrono::seconds between_looks{1};

volatile std::sig_atomic_t stopped = 0;

/// Switches the terminal to the alternate screen, without echo and without waiting for whole lines of input.
class screen {
 public:
  screen() {
    ::tcgetattr(STDIN_FILENO, &before_);
    termios now = before_;
    now.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    ::tcsetattr(STDIN_FILENO, TCSANOW, &now);
    for (const int s : {SIGINT, SIGTERM, SIGHUP}) std::signal(s, [](int) { stopped = 1; });
    fmt::print("\x1b[?1049h\x1b[?25l");
  }
  ~screen() {
    fmt::print("\x1b[?25h\x1b[?1049l");
    std::fflush(stdout);
    ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  screen(const screen&) = delete;
  screen& operator=(const screen&) = delete;

  static void draw(const std::string& text) {
    std::string lines;
    for (const char c : text) lines += c == '\n' ? std::string("\x1b[K\n") : std::string(1, c);
    fmt::print("\x1b[H{}\nq: quit\x1b[K\x1b[J", lines);
    std::fflush(stdout);
  }
  static unsigned columns() {
    winsize size{};
    constexpr unsigned usual = 80;
    return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : usual;
  }
  /// Waits until the next refresh. Returns false if the user ends the command.
  static bool wait() {
    pollfd keys{STDIN_FILENO, POLLIN, 0};
    constexpr int milliseconds = std::chrono::milliseconds(between_looks).count();
    if (::poll(&keys, 1, milliseconds) <= 0) return stopped == 0;
    char key = 0;
    return ::read(STDIN_FILENO, &key, 1) == 1 && key != 'q' && stopped == 0;
  }

 private:
  termios before_{};
};

/// Reads the processes repeatedly, and computes their rates since the previous look().
class observer {
 public:
  std::vector<process_and_rates> look() {
    const clock::time_point now = clock::now();
    std::vector<running_process> found = running_processes();
    auto result = with_rates(last_, found, std::chrono::duration<double>(now - then_).count());
    last_ = std::move(found);
    then_ = now;
    return result;
  }

 private:
  std::vector<running_process> last_;
  clock::time_point then_;
};

int show_once(bool json) {
  observer it;
  static_cast<void>(it.look());
  std::this_thread::sleep_for(between_looks);
  const auto processes = it.look();
  fmt::print("{}", json ? json_of(processes) : table_of(processes, unsigned(-1)));
  return 0;
}

int show_until_key() {
  const screen shown;
  observer it;
  do {
    screen::draw(table_of(it.look(), screen::columns()));
  } while (screen::wait());
  return 0;
}

}  // namespace

int top(int argc, char** argv) {
  return command_line::guarded("hpe top", [&] {
    bool help = false;
    bool once = ::isatty(STDOUT_FILENO) == 0 || ::isatty(STDIN_FILENO) == 0;
    bool json = false;
    const std::vector<command_line::option> table{
        {"--once", "",
         "print the figures of one second and end (the default unless standard input and output are terminals)",
         command_line::to_flag(once)},
        {"--json", "", "print the figures of one second as a JSON object", command_line::to_flag(json)},
        command_line::help_option(help)};
    command_line::read(table, argc, argv);
    if (help) {
      command_line::print_help(fmt::format(
          "Usage: hpe top [options]\n\n"
          "Shows your processes that use hpe now on this machine: bytes/s to devices, to the host and between\n"
          "devices, touches of device memory that waited, launches, device memory given back to other processes\n"
          "(HPE_SHARE), and the bytes of each device that back allocations.\n"
          "The key q ends the command.\n\n{}",
          command_line::lines_of_help(table)));
      return 0;
    }
    return once || json ? show_once(json) : show_until_key();
  });
}

}  // namespace hpe::cli
