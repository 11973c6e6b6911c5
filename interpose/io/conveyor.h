#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "runtime/base/thread_safety.h"

namespace hpe::interpose {

/// Items that several threads prepare in any order and one thread takes in order: while it uses one item, the next are
/// prepared. The threads belong to the object, so none is left when the process forks or ends.
class conveyor {
 public:
  /// Calls prepare(i) once for each i below `count`, unless the object is destroyed before, and only for i less than
  /// `ahead` above the last wait(). `helpers` threads call it, or fewer if the system has no more threads; without any,
  /// wait() does.
  conveyor(std::size_t count, std::size_t ahead, unsigned helpers, std::function<void(std::size_t)> prepare);
  /// Waits for calls of prepare in progress.
  ~conveyor();
  conveyor(const conveyor&) = delete;
  conveyor& operator=(const conveyor&) = delete;

  /// Waits until item i is ready. The caller, a single thread, waits for the items in order, and no longer uses those
  /// before i. Throws what prepare threw for i.
  void wait(std::size_t i);

 private:
  void help();
  /// Prepares the next item. Releases the lock meanwhile.
  void prepare_one() HPE_REQUIRES(mutex_);
  [[nodiscard]] bool may_start() const HPE_REQUIRES(mutex_) { return next_ < ready_.size() && next_ < taken_ + ahead_; }

  const std::size_t ahead_;
  const std::function<void(std::size_t)> prepare_;
  mutex mutex_;
  condition_variable changed_;
  std::size_t next_ HPE_GUARDED_BY(mutex_) = 0;   // the first item that no thread has begun
  std::size_t taken_ HPE_GUARDED_BY(mutex_) = 0;  // the item of the last wait()
  bool stop_ HPE_GUARDED_BY(mutex_) = false;
  std::vector<std::uint8_t> ready_ HPE_GUARDED_BY(mutex_);
  std::vector<std::exception_ptr> failed_ HPE_GUARDED_BY(mutex_);
  std::vector<std::thread> helpers_;
};

}  // namespace hpe::interpose
