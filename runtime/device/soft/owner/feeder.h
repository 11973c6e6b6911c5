#pragma once

/// The owner's thread that moves commands from streams whose rings were full into the rings, as room comes up. So
/// queuing never waits.

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
  /// The set's streams outlive it, and so does what the gate is made of.
  explicit feeder(std::unique_ptr<gate> sleeping_place);
  feeder(const feeder&) = delete;
  feeder& operator=(const feeder&) = delete;
  ~feeder();

  /// The stream has commands that wait for room. Not under the stream's lock.
  void add(soft_stream& hungry) noexcept;

  /// In a child made by fork: forgets the thread, which is not there.
  void forget() noexcept { static_cast<void>(thread_.release()); }

 private:
  void run();
  /// Sleeps until a hungry stream has plenty of room, or another one was added.
  void sleep();

  std::unique_ptr<gate> gate_;
  mutex mutex_;
  condition_variable changed_;
  std::vector<soft_stream*> hungry_ HPE_GUARDED_BY(mutex_);  // with room for all streams
  std::vector<soft_stream*> still_hungry_;                   // of the thread, with room for all streams too
  std::vector<timepoint> room_;                              // likewise
  std::atomic<bool> added_{false};
  bool stop_ HPE_GUARDED_BY(mutex_) = false;
  std::unique_ptr<std::thread> thread_;
};

}  // namespace hpe::device::soft
