#include "runtime/device/soft/softd/page_maker.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <system_error>
#include <thread>

#include "runtime/base/granule.h"
#include "runtime/os/free_memory.h"
#include "runtime/os/virtual_memory.h"

namespace hpe::device::soft {

namespace {

constexpr std::size_t worth_making = 4 * granule_size;
// The pages of many bytes are allocated at once, because in each system call that allocates huge pages, Linux first
// makes every processor drain its lists of free pages.
constexpr std::size_t largest_call = 16 * granule_size;
// A thread makes a system call only if the call allocates less than one sixteenth of the free host memory.
constexpr double share_of_free_memory = 16;

}  // namespace

void page_maker::add(std::uintptr_t address, std::size_t bytes) {
  if (bytes < worth_making || budget_ == 0 || most_threads_ == 0) return;
  const lock_guard lock(mutex_);
  ranges_[address] = {bytes, 0};
  const std::size_t wanted = std::min<std::size_t>(most_threads_, (bytes + largest_call - 1) / largest_call);
  try {
    for (; threads_ < wanted; ++threads_) std::thread([this] { work(); }).detach();
  } catch (const std::system_error&) {
    if (threads_ == 0) ranges_.clear();  // without a thread, page faults allocate the pages
  }
  added_.notify_all();
}

void page_maker::remove(std::uintptr_t address, std::size_t bytes) {
  const lock_guard lock(mutex_);
  const auto end = ranges_.lower_bound(address + bytes);
  for (auto r = ranges_.lower_bound(address); r != end; r = ranges_.erase(r)) begun_ -= r->second.begun;
  added_.notify_all();  // the budget has free bytes again
}

std::optional<page_maker::populate_call> page_maker::next() {
  const std::size_t left = budget_ - begun_;
  for (auto& [address, r] : ranges_) {
    const std::size_t bytes = std::min({r.bytes - r.begun, left, largest_call});
    if (bytes == 0) continue;
    const populate_call result{address + r.begun, bytes};
    r.begun += bytes;
    begun_ += bytes;
    return result;
  }
  return std::nullopt;
}

void page_maker::work() {
  ::pthread_setname_np(::pthread_self(), "softd-pages");
  // SCHED_BATCH instead of SCHED_IDLE, because on busy cores a thread with SCHED_IDLE would hold locks of the operating
  // system for a long time, while other threads wait for these locks.
  const sched_param none{};
  ::pthread_setschedparam(::pthread_self(), SCHED_BATCH, &none);
  unique_lock lock(mutex_);
  for (;;) {
    const auto found = next();
    if (!found) {
      added_.wait(lock);
      continue;
    }
    lock.unlock();
    if (static_cast<double>(found->bytes) < os::free_memory().bytes / share_of_free_memory)
      os::populate_with_huge_pages(reinterpret_cast<void*>(found->address),
                                   found->bytes);  // NOLINT(performance-no-int-to-ptr): of the layout
    lock.lock();
  }
}

}  // namespace hpe::device::soft
