#include "runtime/os/worker.h"

#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/os/thread.h"

namespace hpe::os {

bool worker::post(std::function<void()> task) {
  {
    const lock_guard lock(mutex_);
    if (is_ending_) return false;
    try {
      if (!thread_.joinable()) thread_ = start_thread(name_.c_str(), [this] { run(); });
    } catch (const error& e) {
      log(log_level::info, "the thread \"{}\" cannot be started: {}", name_, e.what());
      return false;
    }
    tasks_.push_back(std::move(task));
  }
  changed_.notify_one();
  return true;
}

void worker::finish() noexcept {
  std::thread ending;
  {
    const lock_guard lock(mutex_);
    is_ending_ = true;
    std::swap(ending, thread_);
  }
  changed_.notify_one();
  if (ending.joinable()) ending.join();
}

void worker::run() noexcept {
  unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&]() HPE_REQUIRES(mutex_) { return is_ending_ || !tasks_.empty(); });
    if (is_ending_) return;
    const std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    lock.lock();
  }
}

}  // namespace hpe::os
