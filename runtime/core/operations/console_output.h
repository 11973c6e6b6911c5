#pragma once

#include <mutex>

#include "runtime/device/device.h"

namespace hpe::core {

/// Puts what kernels printed on the program's standard output and standard error, through stdio, so that it is in order
/// with what the program prints itself. Any thread.
class console_output {
 public:
  /// Everything that launches which have ended printed and that was not written yet.
  void write(device::device_set& devices);

 private:
  std::mutex mutex_;  // what was taken first is written first
};

}  // namespace hpe::core
