#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "runtime/base/thread_safety.h"

namespace hpe::interpose {

/// Prepares items in several threads, in any order, for one thread that uses them in order: while that thread uses one
/// item, other threads prepare the next items. The threads belong to the object and end with it, so that no thread
/// remains when the process forks or ends.
class ordered_workers {
 public:
  /// Calls prepare(i) once for each i below `count`, unless the object is destroyed first. Item i is prepared only if
  /// it is less than `ahead` items after the item of the last wait(). `helpers` threads call prepare, or fewer threads
  /// if the system cannot start that many. If the system cannot start any thread, wait() calls prepare.
  ordered_workers(std::size_t count, std::size_t ahead, unsigned helpers, std::function<void(std::size_t)> prepare);
  /// Waits for calls of prepare that are in progress.
  ~ordered_workers();
  ordered_workers(const ordered_workers&) = delete;
  ordered_workers& operator=(const ordered_workers&) = delete;

  /// Waits until item i is ready. Only one thread may call wait(), for one item after another in order. When this
  /// thread calls wait(i), it must no longer use the items before i. Rethrows the exception that prepare threw for item
  /// i.
  void wait(std::size_t i);

 private:
  void help();
  /// Prepares the next item. Unlocks the mutex during the call of prepare.
  void prepare_one() HPE_REQUIRES(mutex_);
  [[nodiscard]] bool may_start() const HPE_REQUIRES(mutex_) { return next_ < ready_.size() && next_ < taken_ + ahead_; }

  const std::size_t ahead_;
  const std::function<void(std::size_t)> prepare_;
  mutex mutex_;
  condition_variable changed_;
  std::size_t next_ HPE_GUARDED_BY(mutex_) = 0;   // the first item that no thread has begun to prepare
  std::size_t taken_ HPE_GUARDED_BY(mutex_) = 0;  // the item of the last wait()
  bool stop_ HPE_GUARDED_BY(mutex_) = false;
  std::vector<std::uint8_t> ready_ HPE_GUARDED_BY(mutex_);
  std::vector<std::exception_ptr> failed_ HPE_GUARDED_BY(mutex_);
  std::vector<std::thread> helpers_;
};

}  // namespace hpe::interpose
