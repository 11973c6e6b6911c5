#pragma once

/// Functions that start, kill and reap the process of a soft device.

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <string>
#include <vector>

#include "runtime/device/device.h"
#include "runtime/os/file_descriptor.h"

namespace hpe::device::soft {

/// Returns the path of the program that soft devices run. This is `option` (HPE_SOFTD) if it is not empty; otherwise
/// hpe-softd. Searches for hpe-softd in the folder of the library or program that contains this code, and in the
/// folders ../bin, ../libexec/hpe, ../../bin and ../../libexec/hpe relative to it. Throws HPE_ERROR_INITIALIZATION if
/// there is no such program; the message names the searched folders.
[[nodiscard]] std::string find_softd(const std::string& option);

/// Starts a device's keeper (see softd_process) through an extra process, the keeper's parent. This parent is a child
/// of the program and shares the program's memory. The program does not notice the end of the parent: neither wait()
/// nor SIGCHLD reports it, because the parent's exit signal is 0. The parent never calls exec, which would change the
/// exit signal.
///
/// Usually this parent ends as soon as the keeper runs, and the operating system makes another process, usually init,
/// the keeper's parent. The program itself would become the keeper's parent if it is the first process of a container
/// or has set PR_SET_CHILD_SUBREAPER. In these cases the original parent stays until the keeper ends. It then only
/// sleeps in system calls, has no open files, and must not use the C library, because it has no thread-local storage of
/// its own. Lists of processes show this parent with the name and memory of the program.
class keeper_parent {
 public:
  keeper_parent() = default;
  keeper_parent(const keeper_parent&) = delete;
  keeper_parent& operator=(const keeper_parent&) = delete;
  ~keeper_parent() { end(); }

  struct start;  // the program to start, and the result of the start
  /// Starts the keeper, and stores the result in `what`. Call this once.
  void start_keeper(start& what);
  /// Waits until the parent has ended; returns at once if no parent runs. A parent that stays (see above) ends after
  /// the keeper; any other parent ends as soon as the keeper runs.
  void end() noexcept;

 private:
  std::vector<std::max_align_t> stack_;
  pid_t process_ = -1;
};

/// A running hpe-softd. The destructor kills hpe-softd if it runs, but not in a child process after fork.
///
/// hpe-softd is not a child of the program, because the program may wait for all its children. The parent of hpe-softd
/// is the keeper, a small process that kills hpe-softd when the program has ended or called exec, and reports to the
/// program how hpe-softd ended.
class softd_process {
 public:
  /// Starts `program`, hpe-softd, as device number `device`. The new process inherits only standard output and error,
  /// and the keeper's socket; standard input is /dev/null. Throws HPE_ERROR_INITIALIZATION if the process cannot be
  /// started.
  softd_process(const std::string& program, unsigned device, const uvas_layout& layout);
  softd_process(const softd_process&) = delete;
  softd_process& operator=(const softd_process&) = delete;
  ~softd_process();

  /// Waits until the keeper has reported the process number and a pidfd of hpe-softd. Call this before pid() and
  /// pidfd(). Throws HPE_ERROR_INITIALIZATION if the program ended at once or does not belong to this build of hpe.
  void await_start();

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  [[nodiscard]] int pidfd() const noexcept { return pidfd_.get(); }  // readable once the process is dead
  [[nodiscard]] int control() const noexcept { return control_.get(); }
  /// Returns false if the program has closed the descriptor of the control socket, even if another open file has the
  /// same number.
  [[nodiscard]] bool control_is_open() const noexcept;
  [[nodiscard]] bool reaped() const noexcept { return reaped_.load(); }

  void kill() noexcept;

  /// Waits for the keeper's report and describes how the process ended, in words that follow "its process ". Call this
  /// once, and only when the process is dead or was killed.
  std::string reap();

 private:
  std::string program_;
  unsigned device_;
  pid_t owner_;
  pid_t pid_ = -1;
  os::file_descriptor pidfd_;
  os::file_descriptor control_;
  std::uint64_t control_inode_ = 0;
  keeper_parent parent_;
  os::file_descriptor keeper_;  // the keeper's socket; the keeper ends when the socket is closed
  std::atomic<bool> reaped_{false};
};

}  // namespace hpe::device::soft
