#pragma once

/// Child processes that share a device (HPE_SHARE), each with data that fills three quarters of the device's memory.

#include <sys/types.h>

#include <cstddef>

namespace hpe::bench {

/// A child process that makes passes over its data when the parent starts a phase.
class sharing_process {
 public:
  /// The object must be created before hpe starts in the parent. group: the value of HPE_SHARE. memory: the device
  /// memory, in bytes, that all processes of the group share. part: the bytes that one launch accesses.
  sharing_process(const char* group, std::size_t memory, std::size_t part);
  sharing_process(const sharing_process&) = delete;
  sharing_process& operator=(const sharing_process&) = delete;
  /// Ends the child process.
  ~sharing_process();

  /// Starts a phase of `passes` passes over the data, with a launch for each part of the data.
  void start(unsigned passes);
  /// Waits until the phase has ended. Throws std::runtime_error if the child process failed.
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
