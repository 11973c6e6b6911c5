#pragma once

#include <deque>
#include <functional>
#include <string>
#include <thread>

#include "runtime/base/thread_safety.h"

namespace hpe::os {

/// A thread that runs tasks one after the other, in the order in which they were posted. Thread-safe.
class worker {
 public:
  /// The first task starts the thread. `name`: see start_thread.
  explicit worker(std::string name) : name_(std::move(name)) {}
  ~worker() { finish(); }
  worker(const worker&) = delete;
  worker& operator=(const worker&) = delete;

  /// Lets the thread run a task, which must not throw. Returns false if the task does not run, because finish() was
  /// called or the system cannot start a thread. May throw std::bad_alloc.
  bool post(std::function<void()> task) HPE_EXCLUDES(mutex_);
  /// Waits for the end of the task that is running. Removes all other tasks. Later tasks do not run.
  void finish() noexcept HPE_EXCLUDES(mutex_);

 private:
  void run() noexcept;

  const std::string name_;
  mutex mutex_;
  std::deque<std::function<void()>> tasks_ HPE_GUARDED_BY(mutex_);
  bool is_ending_ HPE_GUARDED_BY(mutex_) = false;
  std::thread thread_ HPE_GUARDED_BY(mutex_);
  condition_variable changed_;  // signals new tasks and the end
};

}  // namespace hpe::os
