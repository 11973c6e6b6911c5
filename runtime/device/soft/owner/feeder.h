#pragma once

/// A thread of the owner, the process that runs the program. If a stream's command ring is full, the owner keeps
/// further commands in a queue of its own, so that a thread that queues a command never waits. The feeder's thread
/// moves these commands into the ring when the ring has free slots.

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/base/thread_safety.h"
#include "runtime/device/device.h"

namespace hpe::device::soft {

class soft_stream;

class feeder {
 public:
  /// `sleeping_place`: the gate on which the feeder's thread sleeps. The streams that are passed to add(), and the
  /// objects that the gate uses, must outlive the feeder.
  explicit feeder(std::unique_ptr<gate> sleeping_place);
  feeder(const feeder&) = delete;
  feeder& operator=(const feeder&) = delete;
  ~feeder();

  /// Adds a stream whose commands wait for free slots in its ring. The caller must not hold the stream's mutex.
  void add(soft_stream& hungry) noexcept;

  /// Call this in a child process after fork: the thread does not exist there, so the destructor must not join it.
  void forget() noexcept { static_cast<void>(thread_.release()); }

 private:
  void run();
  /// Sleeps until a stream in still_hungry_ has a half-free ring, or until another stream is added.
  void sleep();

  std::unique_ptr<gate> gate_;
  mutex mutex_;
  condition_variable changed_;
  std::vector<soft_stream*> hungry_ HPE_GUARDED_BY(mutex_);  // has capacity for all streams
  std::vector<soft_stream*> still_hungry_;                   // used only by the thread; has capacity for all streams
  std::vector<timepoint> room_;                              // used only by the thread; has capacity for all streams
  std::atomic<bool> added_{false};
  bool stop_ HPE_GUARDED_BY(mutex_) = false;
  std::unique_ptr<std::thread> thread_;
};

}  // namespace hpe::device::soft
