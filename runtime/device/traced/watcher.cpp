#include "runtime/device/traced/watcher.h"

#include <pthread.h>

#include <algorithm>
#include <csignal>

// Invariant, under the mutex: the front of a line is the oldest work of its stream that was not seen to end. The points
// of `after` are taken off as they are reached; the last moves the line's `free` time.

namespace hpe::device::traced {

watcher::watcher(device_set& devices, trace::recorder& to)
    : devices_(devices), to_(to), gate_(devices.create_gate()), thread_([this] { run(); }) {}

watcher::~watcher() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  gate_->ring();
  thread_.join();
}

void watcher::add(watched_work work) {
  {
    const std::lock_guard lock(mutex_);
    lines_[work.point.timeline].queue.push_back(std::move(work));
  }
  gate_->ring();
}

void watcher::settle() {
  const std::lock_guard lock(mutex_);
  look();
}

std::vector<timepoint> watcher::look() {
  std::vector<timepoint> next;
  for (auto& [number, its] : lines_) {
    while (!its.queue.empty()) {
      watched_work& w = its.queue.front();
      const auto now = trace::clock::now();
      if (std::erase_if(w.after, [&](timepoint p) { return devices_.reached(p); }) != 0) its.free = now;
      if (!devices_.reached(w.point)) {
        next.insert(next.end(), w.after.begin(), w.after.end());
        if (w.after.empty()) next.push_back(w.point);
        break;
      }
      // What it waited for may have been reached unseen: then it began somewhere between.
      to_.add(w.what, w.name, w.where, std::min(std::max(its.free, w.queued), now), now, w.bytes);
      its.free = now;
      its.queue.pop_front();
    }
  }
  return next;
}

void watcher::run() {
  ::pthread_setname_np(::pthread_self(), "hpe-trace");
  for (;;) {
    std::vector<timepoint> next;
    {
      const std::lock_guard lock(mutex_);
      if (stop_) return;
      next = look();
    }
    gate_->sleep(next, std::chrono::steady_clock::time_point::max());
  }
}

}  // namespace hpe::device::traced
