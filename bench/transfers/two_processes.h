#pragma once

/// Two processes that share a device (HPE_SHARE), each with data of three quarters of its memory.

#include <sys/types.h>

#include <cstddef>

namespace hpe::bench {

/// A child process that works on its data whenever the parent says so.
class sharing_process {
 public:
  /// To be made before hpe starts in the parent. memory: bytes of the device that all processes of `group` share.
  /// part: bytes of a launch.
  sharing_process(const char* group, std::size_t memory, std::size_t part);
  sharing_process(const sharing_process&) = delete;
  sharing_process& operator=(const sharing_process&) = delete;
  /// Ends the process.
  ~sharing_process();

  /// Starts a phase: so many passes over the data, with a launch for each part.
  void start(unsigned passes);
  /// Waits for the end of the phase. Throws if the process failed.
  void finish();
  void run(unsigned passes) {
    start(passes);
    finish();
  }

 private:
  pid_t pid_ = -1;
  int orders_ = -1;
  int answers_ = -1;
};

}  // namespace hpe::bench
