#include "runtime/device/soft/monitor.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/os/signals.h"

namespace hpe::device::soft {

monitor::monitor(std::vector<softd_process*> processes, std::function<void(unsigned, const std::string&)> on_death)
    : processes_(std::move(processes)), on_death_(std::move(on_death)), stop_(::eventfd(0, EFD_CLOEXEC)) {
  if (!stop_) throw_system_error("eventfd");
  const os::signals_blocked none_of_the_programs;
  thread_ = std::make_unique<std::thread>([this] { watch(); });
}

monitor::~monitor() {
  if (!thread_) return;
  ::eventfd_write(stop_.get(), 1);
  thread_->join();
}

void monitor::forget() noexcept { static_cast<void>(thread_.release()); }

bool monitor::wait_for_all(std::chrono::milliseconds at_most) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, at_most, [this] { return dead_ == processes_.size(); });
}

void monitor::watch() {
  ::pthread_setname_np(::pthread_self(), "hpe-monitor");
  std::vector<pollfd> watched;
  for (const softd_process* process : processes_) watched.push_back({process->pidfd(), POLLIN, 0});
  watched.push_back({stop_.get(), POLLIN, 0});
  for (;;) {
    if (::poll(watched.data(), watched.size(), -1) < 0) continue;
    if (watched.back().revents != 0) return;
    for (unsigned i = 0; i < processes_.size(); ++i) {
      if (watched[i].revents == 0) continue;
      watched[i].fd = -1;
      on_death_(i, processes_[i]->reap());
      const std::lock_guard lock(mutex_);
      ++dead_;
      changed_.notify_all();
    }
  }
}

}  // namespace hpe::device::soft
