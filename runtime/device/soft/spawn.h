#pragma once

/// Starting, ending and reaping the process of a soft device.

#include <sys/types.h>

#include <atomic>
#include <string>

#include "runtime/device/device.h"
#include "runtime/os/file_descriptor.h"

namespace hpe::device::soft {

/// A pidfd of the calling process, which its devices watch.
[[nodiscard]] os::file_descriptor open_own_pidfd();

/// The program that soft devices run: `option` if it is not empty, else hpe-softd beside the library or program that
/// this code is part of, in its ../bin or ../libexec/hpe. Throws HPE_ERROR_INITIALIZATION with where it looked.
[[nodiscard]] std::string find_softd(const std::string& option);

/// A running hpe-softd. Its destructor kills it if it still runs, but only in the process that started it.
class softd_process {
 public:
  /// Starts the program with the far end of the control socket as its only open file besides standard output and error.
  /// Throws HPE_ERROR_INITIALIZATION.
  softd_process(const std::string& program, unsigned device, const uvas_layout& layout);
  softd_process(const softd_process&) = delete;
  softd_process& operator=(const softd_process&) = delete;
  ~softd_process();

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  [[nodiscard]] int pidfd() const noexcept { return pidfd_.get(); }  // readable once it is dead
  [[nodiscard]] int control() const noexcept { return control_.get(); }
  [[nodiscard]] bool reaped() const noexcept { return reaped_.load(); }

  void kill() noexcept;

  /// Waits for its end and says how it ended, in words that follow "its process ". Once.
  std::string reap();

 private:
  pid_t owner_;
  pid_t pid_ = -1;
  os::file_descriptor pidfd_;
  os::file_descriptor control_;
  std::atomic<bool> reaped_{false};
};

}  // namespace hpe::device::soft
