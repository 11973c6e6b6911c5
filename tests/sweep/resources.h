#pragma once

/// The resources that a process and its devices use. If a run leaks, the resources before and after the run differ.

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace sweep {

struct resources {
  std::int64_t descriptors = 0;
  std::int64_t mappings = 0;                ///< mappings of memory files and of files in /dev/shm
  std::int64_t processes = 0;               ///< processes of devices
  std::int64_t regions = 0;                 ///< regions that exist
  std::int64_t buffers = 0;                 ///< free staging buffers
  std::int64_t locked = 0;                  ///< regions whose mutex a thread holds
  std::vector<std::int64_t> device_memory;  ///< free bytes of each device; -1: the device is lost
};

/// Returns the device processes of a process, by device.
[[nodiscard]] std::map<int, pid_t> device_processes(pid_t of);

/// Returns the resources that the operating system shows; the process need not have started the runtime.
[[nodiscard]] resources of_process();
/// Returns the resources of the process, of the runtime and of its devices (runtime_resources.cpp).
[[nodiscard]] resources of_runtime();

/// Returns the differences as a sentence; empty if there is no difference.
[[nodiscard]] std::string difference(const resources& before, const resources& after);

}  // namespace sweep
