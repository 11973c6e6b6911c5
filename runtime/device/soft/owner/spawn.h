#pragma once

/// Functions that start, end and reap the process of a soft device.

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <string>
#include <vector>

#include "runtime/device/device.h"
#include "runtime/os/file_descriptor.h"

namespace hpe::device::soft {

/// Returns the path of the program that soft devices run: `option` if it is not empty; otherwise the path of hpe-softd.
/// Searches hpe-softd in the folder of the library or program that contains this code, and in ../bin and ../libexec/hpe
/// relative to this folder. Throws HPE_ERROR_INITIALIZATION; the message names the searched folders.
[[nodiscard]] std::string find_softd(const std::string& option);

/// The parent of a device's keeper: a process that shares the memory of this process. Neither wait() nor SIGCHLD
/// reports the end of this parent, because its exit signal is 0. The parent never calls exec, which would change the
/// exit signal.
///
/// Usually this parent ends as soon as the keeper runs, and the process that adopts orphans becomes the keeper's
/// parent. If that process would be the program itself (the first process of a container, or PR_SET_CHILD_SUBREAPER),
/// the keeper's parent stays until the keeper ends. In this case it only sleeps in system calls, has no open files, and
/// must not use the C library, because it has no thread-local storage of its own. Lists of processes show this parent
/// with the name and memory of the program.
class keeper_parent {
 public:
  keeper_parent() = default;
  keeper_parent(const keeper_parent&) = delete;
  keeper_parent& operator=(const keeper_parent&) = delete;
  ~keeper_parent() { end(); }

  struct start;  // the program to start, and the result of the start
  /// Starts the keeper. Called once.
  void start_keeper(start& what);
  /// Waits until the parent has ended, if there is one. A parent that stays (see above) ends after the keeper, any
  /// other parent as soon as the keeper runs.
  void end() noexcept;

 private:
  std::vector<std::max_align_t> stack_;
  pid_t process_ = -1;
};

/// A running hpe-softd. The destructor kills the process if it still runs, but only when called in the process that
/// started it.
///
/// The process is not a child of the program, because the program may wait for all its children. Its parent is a
/// keeper, a process that only watches: the keeper kills the device when the program has ended or called exec, and
/// reports how the device ended.
class softd_process {
 public:
  /// Starts the program. Its only open file besides standard input, output and error is the keeper's socket. Throws
  /// HPE_ERROR_INITIALIZATION.
  softd_process(const std::string& program, unsigned device, const uvas_layout& layout);
  softd_process(const softd_process&) = delete;
  softd_process& operator=(const softd_process&) = delete;
  ~softd_process();

  /// Waits until the keeper has reported the process number and a pidfd of the process. Call this before pid() and
  /// pidfd(). Throws HPE_ERROR_INITIALIZATION.
  void await_start();

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  [[nodiscard]] int pidfd() const noexcept { return pidfd_.get(); }  // readable once the process is dead
  [[nodiscard]] int control() const noexcept { return control_.get(); }
  /// Returns false if the program has closed the descriptor; its number may now belong to another file.
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
