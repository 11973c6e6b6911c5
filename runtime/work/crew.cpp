#include "runtime/work/crew.h"

#include <algorithm>

#include "runtime/os/thread.h"

namespace hpe::work {

void crew::start(const char* name, unsigned helpers) {
  for (unsigned n = 0; n < helpers; ++n) helpers_.push_back(os::start_thread(name, [this] { help(); }));
}

void crew::stop() noexcept {
  {
    const lock_guard lock(mutex_);
    stop_ = true;
  }
  work_.notify_all();
  for (std::thread& t : helpers_) t.join();
  helpers_.clear();
}

void crew::do_next(job& of, unique_lock& lock) {
  const std::uint64_t n = of.next++;
  ++of.running;
  if (of.next == of.count) std::erase(jobs_, &of);
  std::exception_ptr failure;
  lock.unlock();
  try {
    of.task(n);
  } catch (...) {
    failure = std::current_exception();
  }
  lock.lock();
  --of.running;
  if (failure == nullptr) return;
  if (of.failure == nullptr) of.failure = failure;
  of.next = of.count;
  std::erase(jobs_, &of);
}

void crew::help() {
  unique_lock lock(mutex_);
  for (;;) {
    work_.wait(lock, [&]() HPE_REQUIRES(mutex_) { return stop_ || !jobs_.empty(); });
    if (stop_) return;
    job& one = *jobs_.front();
    do_next(one, lock);
    if (one.running == 0) done_.notify_all();
  }
}

void crew::for_each(std::uint64_t count, const std::function<void(std::uint64_t)>& task) {
  job mine{count, task};
  unique_lock lock(mutex_);
  if (count != 0) jobs_.push_back(&mine);
  if (count > 1) work_.notify_all();
  while (mine.next < mine.count) do_next(mine, lock);
  done_.wait(lock, [&]() HPE_REQUIRES(mutex_) { return mine.running == 0; });
  if (mine.failure) std::rethrow_exception(mine.failure);
}

}  // namespace hpe::work
