#include "interpose/io/ordered_workers.h"

#include "runtime/os/thread.h"

namespace hpe::interpose {

ordered_workers::ordered_workers(std::size_t count, std::size_t ahead, unsigned helpers,
                                 std::function<void(std::size_t)> prepare)
    : ahead_(ahead), prepare_(std::move(prepare)), ready_(count), failed_(count) {
  helpers_.reserve(helpers);
  try {
    while (helpers_.size() < helpers) helpers_.push_back(os::start_thread("hpe-io", [this] { help(); }));
  } catch (const std::exception&) {
    return;  // no more threads can be started; the threads that exist prepare the items, or wait() does
  }
}

ordered_workers::~ordered_workers() {
  {
    const lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  for (std::thread& helper : helpers_) helper.join();
}

void ordered_workers::prepare_one() {
  const std::size_t mine = next_++;
  mutex_.unlock();
  std::exception_ptr failure;
  try {
    prepare_(mine);
  } catch (...) {
    failure = std::current_exception();
  }
  mutex_.lock();
  failed_[mine] = failure;
  ready_[mine] = 1;
  changed_.notify_all();
}

void ordered_workers::help() {
  unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this]() HPE_REQUIRES(mutex_) { return stop_ || may_start(); });
    if (stop_) return;
    prepare_one();
  }
}

void ordered_workers::wait(std::size_t i) {
  unique_lock lock(mutex_);
  taken_ = i;
  changed_.notify_all();
  while (ready_[i] == 0) {
    // If there are helpers, this thread prepares no items, so that it can return as soon as item i is ready.
    if (helpers_.empty())
      prepare_one();
    else
      changed_.wait(lock);
  }
  if (failed_[i]) std::rethrow_exception(failed_[i]);
}

}  // namespace hpe::interpose
