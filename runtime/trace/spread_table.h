#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "runtime/base/thread_safety.h"

namespace hpe::trace {

/// Counts how the launches of each kernel ran, in a program that is spread over several devices (hpe run --spread
/// --explain). Thread-safe.
class spread_table {
 public:
  /// Returns the table of this process, which is printed to standard error when the process ends; nullptr unless
  /// HPE_SPREAD_EXPLAIN is 1. The table is never destroyed, because threads may launch kernels until the process ends.
  /// Throws hpe::error for an invalid value.
  [[nodiscard]] static spread_table* active();

  /// Adds a launch on `devices` devices. kernel: the kernel's name in the PTX. reason: why the launch used this number
  /// of devices.
  void add(const std::string& kernel, std::uint32_t devices, double seconds, const std::string& reason);

 private:
  void print();

  struct line {
    std::uint64_t launches = 0, spread = 0;
    std::uint32_t most_devices = 0;
    double seconds = 0;
    std::string why_spread, why_not;  // the reasons of the last spread launch and of the last launch on one device
  };
  mutex mutex_;
  std::map<std::string, line> kernels_ HPE_GUARDED_BY(mutex_);
};

}  // namespace hpe::trace
