#pragma once

/// Finds out when queued work began and ended, and tells the recorder.

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/device/device.h"
#include "runtime/trace/recorder.h"

namespace hpe::device::traced {

/// Work of one stream, as it is queued.
struct watched_work {
  trace::category what{};
  const char* name = nullptr;
  trace::track where;
  std::uint64_t bytes = 0;
  std::vector<timepoint> after;  ///< of other streams
  timepoint point;
  trace::clock::time_point queued;
};

/// Any thread.
class watcher {
 public:
  /// Both outlive it.
  watcher(device_set& devices, trace::recorder& to);
  ~watcher();
  watcher(const watcher&) = delete;
  watcher& operator=(const watcher&) = delete;

  /// Work of one stream comes in the order in which it was queued.
  void add(watched_work work);
  /// Records what has ended by now.
  void settle();

 private:
  struct line {
    std::deque<watched_work> queue;
    trace::clock::time_point free;  // when what came before had ended
  };

  void run();
  /// Under the mutex. Gives the points that something happens at.
  std::vector<timepoint> look();

  device_set& devices_;
  trace::recorder& to_;
  const std::unique_ptr<gate> gate_;
  std::mutex mutex_;
  std::map<std::uint32_t, line> lines_;  // by timeline
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace hpe::device::traced
