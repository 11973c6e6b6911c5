#pragma once

/// A thread of the owner (the process that runs the program) that detects the end of device processes.

#include <poll.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

#include "runtime/base/thread_safety.h"
#include "runtime/device/soft/owner/spawn.h"

namespace hpe::device::soft {

class monitor {
 public:
  /// Starts the thread. When a process ends, the thread calls on_death with the index of the process and a text that
  /// describes how the process ended. The thread also does this, for all processes, when the program has closed hpe's
  /// descriptors. If `interval` is not 0, the thread also calls on_interval at this interval. The processes must
  /// outlive the monitor.
  monitor(std::vector<softd_process*> processes, std::function<void(unsigned, std::string_view)> on_death,
          std::chrono::milliseconds interval, std::function<void()> on_interval);
  monitor(const monitor&) = delete;
  monitor& operator=(const monitor&) = delete;
  /// Ends the thread, but not the processes.
  ~monitor();

  /// Waits until all processes have ended and are reaped. Returns false if this takes longer than `at_most`.
  bool wait_for_all(std::chrono::milliseconds at_most);

  /// Call this in a child process after fork: the thread does not exist there, so the destructor must not join it.
  void forget() noexcept;

 private:
  void watch();
  void tell(unsigned index, std::string_view how);

  std::vector<softd_process*> processes_;
  std::function<void(unsigned, std::string_view)> on_death_;
  std::chrono::milliseconds interval_;
  std::function<void()> on_interval_;
  os::file_descriptor stop_;
  std::vector<pollfd> watched_;  // used only by the thread: the processes, and stop_
  mutex mutex_;
  condition_variable changed_;
  std::size_t dead_ HPE_GUARDED_BY(mutex_) = 0;
  std::unique_ptr<std::thread> thread_;
};

}  // namespace hpe::device::soft
