#pragma once

/// Properties of processes, from /proc.

#include <sys/types.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace device_test {

/// Returns the running processes of the soft devices that a process owns, in the order of the devices.
[[nodiscard]] std::vector<pid_t> soft_devices_of(pid_t owner);

/// exists() returns whether the process exists, even as a zombie; runs() returns whether it exists and is not a zombie.
[[nodiscard]] bool exists(pid_t pid);
[[nodiscard]] bool runs(pid_t pid);

/// Return the parent, the group and the open files of a process.
[[nodiscard]] pid_t parent_of(pid_t pid);
[[nodiscard]] pid_t group_of(pid_t pid);
[[nodiscard]] std::vector<std::string> open_files_of(pid_t pid);

/// Repeats the check until the condition is true; returns false if this takes longer than `at_most`.
template <class Condition>
bool eventually(Condition holds, std::chrono::milliseconds at_most) {
  const auto end = std::chrono::steady_clock::now() + at_most;
  while (!holds()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

/// Returns the names of the files in /dev/shm that a process has open or mapped.
[[nodiscard]] std::vector<std::string> shared_memory_names_of(pid_t pid);

}  // namespace device_test
