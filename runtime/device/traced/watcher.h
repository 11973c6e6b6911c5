#pragma once

/// Records the commands of devices for traces (HPE_TRACE): passes the times at which kernels and copies began and ended
/// to the recorder.
///
/// A thread of the watcher waits for the commands' timepoints. The recorded ends are late: on soft devices by about ten
/// microseconds, until the operating system has woken this thread; on GPUs by at most the pause between two queries of
/// the driver (polling, cuda_gate.h). A command counts as begun when it has been queued, the points for which it waits
/// are reached, and the previous command of its stream has ended.

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/thread_safety.h"
#include "runtime/device/observer.h"
#include "runtime/trace/recorder.h"

namespace hpe::device::traced {

/// Thread-safe.
class watcher final : public command_observer {
 public:
  /// Starts to observe the devices. The devices and the recorder must outlive the watcher.
  watcher(device_set& devices, const uvas_layout& layout, trace::recorder& to);
  ~watcher() override;
  watcher(const watcher&) = delete;
  watcher& operator=(const watcher&) = delete;

  void stream_created(unsigned device, std::uint32_t timeline, priority level) override;
  void kernel_found(std::uint32_t function, const std::string& name) override;
  void queued(const observed_command& command, timepoint point, trace::clock::time_point asked) noexcept override;
  void waits(std::uint32_t timeline, timepoint point) noexcept override;

  /// Records all commands that have ended.
  void settle();

 private:
  struct work {
    observed_command command;
    timepoint point;
    std::vector<timepoint> after;  // points of other streams for which the command waits
    trace::clock::time_point asked;
  };
  /// One stream.
  struct line {
    trace::track where;
    std::vector<timepoint> after;  // points for which the next command waits
    std::deque<work> queue;
    trace::clock::time_point free;  // when the previous command ended, or when the last point in `after` was reached
  };

  void run();
  /// Records all commands that have ended. Returns the points for which the watcher's thread must wait next.
  std::vector<timepoint> look() HPE_REQUIRES(mutex_);
  void record(const work& done, trace::track where, trace::clock::time_point begin, trace::clock::time_point end)
      HPE_REQUIRES(mutex_);

  device_set& devices_;
  const uvas_layout layout_;
  trace::recorder& to_;
  const std::unique_ptr<gate> gate_;
  mutex mutex_;
  std::map<std::uint32_t, line> lines_ HPE_GUARDED_BY(mutex_);           // by timeline
  std::map<unsigned, std::uint32_t> rows_ HPE_GUARDED_BY(mutex_);        // number of streams, by device
  std::map<std::uint32_t, const char*> kernels_ HPE_GUARDED_BY(mutex_);  // names, by kernel_id::function
  bool stop_ HPE_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace hpe::device::traced
