#pragma once

/// The resources that a process and its devices hold. Leaks of a run show as a difference.

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace sweep {

struct resources {
  std::int64_t descriptors = 0;
  std::int64_t mappings = 0;                ///< of files, and in the address space of hpe
  std::int64_t shared = 0;                  ///< files of hpe in /dev/shm
  std::int64_t processes = 0;               ///< of devices
  std::int64_t regions = 0;                 ///< allocations alive
  std::int64_t buffers = 0;                 ///< staging buffers that are free
  std::int64_t locked = 0;                  ///< regions whose mutex a thread holds
  std::vector<std::int64_t> device_memory;  ///< free, by device; -1: lost
};

/// The processes of the devices of a process, by device.
[[nodiscard]] std::map<int, pid_t> device_processes(pid_t of);

/// The resources that the system shows; the process may have no runtime.
[[nodiscard]] resources of_process();
/// The resources of the process, and those of the runtime and its devices (runtime_resources.cpp).
[[nodiscard]] resources of_runtime();

/// The differences as a sentence; empty if there are none.
[[nodiscard]] std::string difference(const resources& before, const resources& after);

}  // namespace sweep
