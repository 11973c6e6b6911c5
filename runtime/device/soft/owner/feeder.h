#pragma once

/// The owner's thread that moves waiting commands of streams whose rings were full into the rings when there is room,
/// so that queuing never waits.

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
  /// The set's streams, and the objects that the gate uses, must outlive the feeder.
  explicit feeder(std::unique_ptr<gate> sleeping_place);
  feeder(const feeder&) = delete;
  feeder& operator=(const feeder&) = delete;
  ~feeder();

  /// Adds a stream with commands that wait for room. The caller must not hold the stream's mutex.
  void add(soft_stream& hungry) noexcept;

  /// In a child made by fork: forgets the thread, which does not exist there.
  void forget() noexcept { static_cast<void>(thread_.release()); }

 private:
  void run();
  /// Sleeps until half of a hungry stream's ring is free, or another stream was added.
  void sleep();

  std::unique_ptr<gate> gate_;
  mutex mutex_;
  condition_variable changed_;
  std::vector<soft_stream*> hungry_ HPE_GUARDED_BY(mutex_);  // has room for all streams
  std::vector<soft_stream*> still_hungry_;                   // used by the thread; has room for all streams
  std::vector<timepoint> room_;                              // used by the thread; has room for all streams
  std::atomic<bool> added_{false};
  bool stop_ HPE_GUARDED_BY(mutex_) = false;
  std::unique_ptr<std::thread> thread_;
};

}  // namespace hpe::device::soft
