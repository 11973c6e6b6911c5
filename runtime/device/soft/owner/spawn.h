#pragma once

/// Starting, ending and reaping the process of a soft device.

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <string>
#include <vector>

#include "runtime/device/device.h"
#include "runtime/os/file_descriptor.h"

namespace hpe::device::soft {

/// The program that soft devices run: `option` if it is not empty, else hpe-softd beside the library or program that
/// contains this code, or in its ../bin or ../libexec/hpe. Throws HPE_ERROR_INITIALIZATION with the searched folders.
[[nodiscard]] std::string find_softd(const std::string& option);

/// The parent of a device's keeper: a process that shares this one's memory. wait() does not find it and SIGCHLD does
/// not report it, because its exit signal is 0 and it does not call exec, which would change that.
///
/// Usually it ends as soon as the keeper runs, and the process that adopts orphans gets the keeper. If that would be
/// the program itself (the first process of a container, or PR_SET_CHILD_SUBREAPER), it stays until the keeper ends. It
/// then only sleeps in system calls, has no open files, and must not use the C library, because it has no thread-local
/// storage of its own. Lists of processes show it with the program's name and memory.
class keeper_parent {
 public:
  keeper_parent() = default;
  keeper_parent(const keeper_parent&) = delete;
  keeper_parent& operator=(const keeper_parent&) = delete;
  ~keeper_parent() { end(); }

  struct start;  // what to start, and the result
  /// Starts the keeper. Called once.
  void start_keeper(start& what);
  /// Waits for the end of this process, which follows the end of the keeper.
  void end() noexcept;

 private:
  std::vector<std::max_align_t> stack_;
  pid_t process_ = -1;
};

/// A running hpe-softd. The destructor kills a process that still runs, but only in the process that started it.
///
/// The process is not a child of the program, which may wait for all its children. Its parent is a keeper, a process
/// that only watches: it kills the device when the program has ended or called exec, and reports how the device
/// ended.
class softd_process {
 public:
  /// Starts the program, with the keeper's socket as its only open file besides standard input, output and error.
  /// Throws HPE_ERROR_INITIALIZATION.
  softd_process(const std::string& program, unsigned device, const uvas_layout& layout);
  softd_process(const softd_process&) = delete;
  softd_process& operator=(const softd_process&) = delete;
  ~softd_process();

  /// Waits for the keeper's report of the process; needed before pid and pidfd. Throws HPE_ERROR_INITIALIZATION.
  void await_start();

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  [[nodiscard]] int pidfd() const noexcept { return pidfd_.get(); }  // readable once the process is dead
  [[nodiscard]] int control() const noexcept { return control_.get(); }
  /// False if the program has closed the descriptor, which may be another file now.
  [[nodiscard]] bool control_is_open() const noexcept;
  [[nodiscard]] bool reaped() const noexcept { return reaped_.load(); }

  void kill() noexcept;

  /// Waits for the keeper's report and describes how the process ended, in words that follow "its process ". To be
  /// called once, and only when the process is dead or was killed.
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
  os::file_descriptor keeper_;  // its socket; the keeper ends when it is closed
  std::atomic<bool> reaped_{false};
};

}  // namespace hpe::device::soft
