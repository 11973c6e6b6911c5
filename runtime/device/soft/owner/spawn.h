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
/// this code is part of, in its ../bin or ../libexec/hpe. Throws HPE_ERROR_INITIALIZATION with where it looked.
[[nodiscard]] std::string find_softd(const std::string& option);

/// The parent of a device's keeper: a process that shares this one's memory and is no child that wait() finds or that
/// SIGCHLD tells of, because its exit signal is 0 and it does not call exec, which would change that.
///
/// As a rule it ends as soon as the keeper runs, and whoever adopts orphans gets the keeper. Where that would be the
/// program itself (the first process of a container, or PR_SET_CHILD_SUBREAPER), it stays until the keeper ends. It
/// then sleeps in one system call after the other, has no open files, and must not use the C library, whose memory for
/// each thread it has none of. Lists of processes show it with the program's name and memory.
class keeper_parent {
 public:
  keeper_parent() = default;
  keeper_parent(const keeper_parent&) = delete;
  keeper_parent& operator=(const keeper_parent&) = delete;
  ~keeper_parent() { end(); }

  struct start;  // what to start, and what came of it
  /// Starts the keeper. Once.
  void start_keeper(start& what);
  /// Waits for the end of the process, which follows that of the keeper.
  void end() noexcept;

 private:
  std::vector<std::max_align_t> stack_;
  pid_t process_ = -1;
};

/// A running hpe-softd. Its destructor kills it if it still runs, but only in the process that started it.
///
/// The process is no child of the program, which may wait for all children that it has. Its parent is a keeper, a
/// process that does nothing but watch: it kills the device when the program has ended or called exec, and reports how
/// the device ended.
class softd_process {
 public:
  /// Starts the program with the keeper's socket as its only open file besides standard output and error. Throws
  /// HPE_ERROR_INITIALIZATION.
  softd_process(const std::string& program, unsigned device, const uvas_layout& layout);
  softd_process(const softd_process&) = delete;
  softd_process& operator=(const softd_process&) = delete;
  ~softd_process();

  /// Waits until the keeper has reported the device's process. Before pid and pidfd. Throws HPE_ERROR_INITIALIZATION.
  void await_start();

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  [[nodiscard]] int pidfd() const noexcept { return pidfd_.get(); }  // readable once it is dead
  [[nodiscard]] int control() const noexcept { return control_.get(); }
  /// False when the program closed the descriptor, which may be another file by now.
  [[nodiscard]] bool control_is_open() const noexcept;
  [[nodiscard]] bool reaped() const noexcept { return reaped_.load(); }

  void kill() noexcept;

  /// Waits for the keeper's report, and says how the process ended, in words that follow "its process ". Once, and only
  /// when the process is dead or was killed.
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
  os::file_descriptor keeper_;  // the socket; the keeper ends when it is closed
  std::atomic<bool> reaped_{false};
};

}  // namespace hpe::device::soft
