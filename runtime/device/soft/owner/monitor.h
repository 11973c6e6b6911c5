#pragma once

/// A thread of the owner that notices when device processes die.

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
  /// Starts the thread. The thread calls on_death(index, how the process ended) for each process that ends. If
  /// `interval` is not 0, the thread also calls on_interval at this interval. The processes must outlive the monitor.
  monitor(std::vector<softd_process*> processes, std::function<void(unsigned, std::string_view)> on_death,
          std::chrono::milliseconds interval, std::function<void()> on_interval);
  monitor(const monitor&) = delete;
  monitor& operator=(const monitor&) = delete;
  /// Ends the thread. Processes that still run are no longer watched.
  ~monitor();

  /// Waits until all processes are dead and reaped. Returns false if the time `at_most` passes first.
  bool wait_for_all(std::chrono::milliseconds at_most);

  /// Forgets the thread in a child made by fork, in which the thread does not exist.
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
