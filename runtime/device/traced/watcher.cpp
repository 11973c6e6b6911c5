#include "runtime/device/traced/watcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/base/demangled.h"
#include "runtime/os/thread.h"
#include "runtime/trace/call_stack.h"

// Invariant under the mutex: the front of a line's queue is the oldest command of the stream whose end the watcher's
// thread has not recorded. When a timepoint in a command's `after` is reached, the thread removes this timepoint and
// sets the line's `free` to the current time.

namespace hpe::device::traced {

watcher::watcher(device_set& devices, const uvas_layout& layout, trace::recorder& to)
    : devices_(devices), layout_(layout), to_(to), gate_(devices.create_gate()) {
  for (unsigned d = 0; d < devices.size(); ++d)
    to_.name_group(1 + d, fmt::format("device {}: {}", d, devices.at(d).info().name));
  to_.before_writing([this] { settle(); });
  devices_.observe(this);
  thread_ = os::start_thread("hpe-trace", [this] { run(); });
}

watcher::~watcher() {
  devices_.observe(nullptr);
  {
    const lock_guard lock(mutex_);
    stop_ = true;
  }
  gate_->ring();
  thread_.join();
}

void watcher::stream_created(unsigned device, std::uint32_t timeline, priority level) {
  static constexpr const char* levels[] = {"copies that threads wait for", "launches and their copies", "prefetch",
                                           "uploads behind writers"};
  const lock_guard lock(mutex_);
  const trace::track where{1 + device, rows_[device]++};
  to_.name_row(where, fmt::format("stream {}: {}", where.row, levels[static_cast<unsigned>(level)]));
  lines_[timeline].where = where;
}

void watcher::kernel_found(std::uint32_t function, const std::string& name) {
  const lock_guard lock(mutex_);
  kernels_[function] = to_.keep(demangled(name));
}

void watcher::queued(const observed_command& command, timepoint point, trace::clock::time_point asked) noexcept {
  try {
    const lock_guard lock(mutex_);
    line& its = lines_.at(point.timeline);
    its.queue.push_back({command, point, std::exchange(its.after, {}), asked});
  } catch (const std::bad_alloc&) {
    return;  // no memory: the trace does not contain the command
  }
  gate_->ring();
}

void watcher::waits(std::uint32_t timeline, timepoint point) noexcept {
  try {
    const lock_guard lock(mutex_);
    lines_.at(timeline).after.push_back(point);
  } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): no memory: in the trace, the next command begins
                                     // too early
  }
}

void watcher::settle() {
  const lock_guard lock(mutex_);
  look();
}

void watcher::record(const work& done, trace::track where, trace::clock::time_point begin,
                     trace::clock::time_point end) {
  const auto add = [&](trace::category what, const char* name) {
    to_.add(what, name, where, begin, end, done.command.bytes);
  };
  const auto on_host = [&](std::uintptr_t address) {
    return address < layout_.base || address - layout_.base >= layout_.size();
  };
  switch (done.command.what) {
    case observed_command::kind::copy:
      if (on_host(done.command.source)) return add(trace::category::copy, "copy to device");
      return add(trace::category::copy, on_host(done.command.destination) ? "copy to host" : "copy between devices");
    case observed_command::kind::fill: return add(trace::category::copy, "fill");
    case observed_command::kind::launch: {
      const auto found = kernels_.find(done.command.function);
      return add(trace::category::kernel, found != kernels_.end() ? found->second : "kernel");
    }
    case observed_command::kind::enqueue: return add(trace::category::kernel, "work of the program");
  }
}

std::vector<timepoint> watcher::look() {
  std::vector<timepoint> next;
  for (auto& [number, its] : lines_) {
    while (!its.queue.empty()) {
      work& w = its.queue.front();
      const auto now = trace::clock::now();
      if (std::erase_if(w.after, [&](timepoint p) { return devices_.reached(p); }) != 0) its.free = now;
      if (!devices_.reached(w.point)) {
        next.insert(next.end(), w.after.begin(), w.after.end());
        if (w.after.empty()) next.push_back(w.point);
        break;
      }
      // The command began when it had been queued and its stream was free. `free` may be later than the true time,
      // because this thread sets `free` only when it looks.
      record(w, its.where, std::min(std::max(its.free, w.asked), now), now);
      its.free = now;
      its.queue.pop_front();
    }
  }
  return next;
}

void watcher::run() {
  for (;;) {
    std::vector<timepoint> next;
    {
      const lock_guard lock(mutex_);
      if (stop_) return;
      next = look();
    }
    gate_->sleep(next, std::chrono::steady_clock::time_point::max());
  }
}

}  // namespace hpe::device::traced
