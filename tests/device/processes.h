#pragma once

/// Properties of processes, from /proc.

#include <sys/types.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace device_test {

/// The living processes of soft devices that a process owns, in the order of the devices.
[[nodiscard]] std::vector<pid_t> soft_devices_of(pid_t owner);

/// exists: whether the process exists, even as a zombie. runs: whether it exists and is no zombie.
[[nodiscard]] bool exists(pid_t pid);
[[nodiscard]] bool runs(pid_t pid);

/// The parent and the group of a process, and its open files.
[[nodiscard]] pid_t parent_of(pid_t pid);
[[nodiscard]] pid_t group_of(pid_t pid);
[[nodiscard]] std::vector<std::string> open_files_of(pid_t pid);

/// Checks the condition until it holds; false when the time is over.
template <class Condition>
bool eventually(Condition holds, std::chrono::milliseconds at_most) {
  const auto end = std::chrono::steady_clock::now() + at_most;
  while (!holds()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

/// The files in /dev/shm that a process has open or mapped.
[[nodiscard]] std::vector<std::string> shared_memory_names_of(pid_t pid);

}  // namespace device_test
