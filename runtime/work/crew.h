#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "runtime/base/thread_safety.h"

namespace hpe::work {

/// Helper threads for tasks that spend most of their time waiting, such as transfers of a file. Thread-safe.
class crew {
 public:
  crew() = default;
  ~crew() { stop(); }
  crew(const crew&) = delete;
  crew& operator=(const crew&) = delete;

  /// Starts the helpers. Without helpers, callers do all tasks themselves.
  void start(const char* name, unsigned helpers);
  /// Ends the helpers after they have done the tasks that they have begun.
  void stop() noexcept;

  /// Calls task(0) to task(count - 1), several at a time, in this thread and in helpers that are free. The calls begin
  /// in this order. Returns when all calls have returned. After a call has thrown, no further call begins, and this
  /// function throws the first exception.
  void for_each(std::uint64_t count, const std::function<void(std::uint64_t)>& task);

 private:
  struct job {
    std::uint64_t count;
    const std::function<void(std::uint64_t)>& task;
    std::uint64_t next = 0;     // the first task that has not begun
    std::uint64_t running = 0;  // the number of tasks that are running
    std::exception_ptr failure = nullptr;
  };

  void help();
  /// Does the next task of a job, which must have a task that has not begun. The caller holds the mutex through `lock`.
  void do_next(job& of, unique_lock& lock) HPE_NO_THREAD_SAFETY_ANALYSIS;

  mutex mutex_;
  bool stop_ HPE_GUARDED_BY(mutex_) = false;
  std::deque<job*> jobs_ HPE_GUARDED_BY(mutex_);  // jobs with tasks that have not begun
  condition_variable work_;                       // helpers wait here for jobs
  condition_variable done_;                       // callers wait here for the end of their jobs
  std::vector<std::thread> helpers_;
};

}  // namespace hpe::work
