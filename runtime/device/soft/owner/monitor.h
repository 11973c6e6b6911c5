#pragma once

/// The owner's one thread that notices the death of devices.

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
  /// In its own thread: calls on_death(index, how it ended) for each process that ends, and, where `interval` is not 0,
  /// on_interval again and again. The processes outlive it.
  monitor(std::vector<softd_process*> processes, std::function<void(unsigned, std::string_view)> on_death,
          std::chrono::milliseconds interval, std::function<void()> on_interval);
  monitor(const monitor&) = delete;
  monitor& operator=(const monitor&) = delete;
  /// Ends the thread. Processes that still run are watched no more.
  ~monitor();

  /// Waits until all processes are dead and reaped. False when the time is over.
  bool wait_for_all(std::chrono::milliseconds at_most);

  /// In a child made by fork: forgets the thread, which is not there.
  void forget() noexcept;

 private:
  void watch();
  void tell(unsigned index, std::string_view how);

  std::vector<softd_process*> processes_;
  std::function<void(unsigned, std::string_view)> on_death_;
  std::chrono::milliseconds interval_;
  std::function<void()> on_interval_;
  os::file_descriptor stop_;
  std::vector<pollfd> watched_;  // of the thread: the processes, and stop_
  mutex mutex_;
  condition_variable changed_;
  std::size_t dead_ HPE_GUARDED_BY(mutex_) = 0;
  std::unique_ptr<std::thread> thread_;
};

}  // namespace hpe::device::soft
