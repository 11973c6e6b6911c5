#include "runtime/device/soft/owner/monitor.h"

#include <sys/eventfd.h>

#include <cerrno>
#include <new>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/os/thread.h"

namespace hpe::device::soft {

monitor::monitor(std::vector<softd_process*> processes, std::function<void(unsigned, std::string_view)> on_death,
                 std::chrono::milliseconds interval, std::function<void()> on_interval)
    : processes_(std::move(processes)),
      on_death_(std::move(on_death)),
      interval_(interval),
      on_interval_(std::move(on_interval)),
      stop_(::eventfd(0, EFD_CLOEXEC)) {
  if (!stop_) throw_system_error("eventfd");
  for (const softd_process* process : processes_) watched_.push_back({process->pidfd(), POLLIN, 0});
  watched_.push_back({stop_.get(), POLLIN, 0});
  // Allocated before the thread starts, so that no exception can lose the started thread.
  auto memory_for_it = std::make_unique<std::thread>();
  *memory_for_it = os::start_thread("hpe-monitor", [this] { watch(); });
  thread_ = std::move(memory_for_it);
}

monitor::~monitor() {
  if (!thread_) return;
  ::eventfd_write(stop_.get(), 1);
  thread_->join();
}

void monitor::forget() noexcept { static_cast<void>(thread_.release()); }

bool monitor::wait_for_all(std::chrono::milliseconds at_most) {
  unique_lock lock(mutex_);
  return changed_.wait_for(lock, at_most, [this]() HPE_REQUIRES(mutex_) { return dead_ == processes_.size(); });
}

void monitor::tell(unsigned index, std::string_view how) {
  on_death_(index, how);
  const lock_guard lock(mutex_);
  ++dead_;
  changed_.notify_all();
}

void monitor::watch() {
  const int patience = interval_.count() == 0 ? -1 : static_cast<int>(interval_.count());
  for (;;) {
    if (::poll(watched_.data(), watched_.size(), patience) < 0) continue;
    // If the program has closed hpe's descriptors, the sockets to the devices are closed, too, and all devices end.
    const bool closed = (watched_.back().revents & POLLNVAL) != 0;
    for (unsigned i = 0; i < processes_.size(); ++i) {
      if (watched_[i].fd < 0 || (watched_[i].revents == 0 && !closed)) continue;
      watched_[i].fd = -1;
      const bool is_dead = (watched_[i].revents & POLLIN) != 0;
      if (is_dead)
        tell(i, processes_[i]->reap());
      else
        tell(i, "can no longer be reached: the program closed hpe's descriptors");
    }
    if (watched_.back().revents != 0) return;
    try {
      if (patience > 0) on_interval_();
    } catch (const std::bad_alloc&) {  // ignored: the thread calls on_interval_ again after the next interval
    }
  }
}

}  // namespace hpe::device::soft
