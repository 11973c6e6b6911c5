#pragma once

/// Two processes that share a device (HPE_SHARE), each with data that fills three quarters of the device's memory.

#include <sys/types.h>

#include <cstddef>

namespace hpe::bench {

/// A child process that works on its data when the parent starts a phase.
class sharing_process {
 public:
  /// Must be made before hpe starts in the parent. memory: the bytes of device memory that all processes of `group`
  /// share. part: the bytes that one launch uses.
  sharing_process(const char* group, std::size_t memory, std::size_t part);
  sharing_process(const sharing_process&) = delete;
  sharing_process& operator=(const sharing_process&) = delete;
  /// Ends the process.
  ~sharing_process();

  /// Starts a phase: `passes` passes over the data, with a launch for each part.
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
