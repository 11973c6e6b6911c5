#include "interpose/gpu/spread/launch_pace.h"

#include <algorithm>
#include <new>
#include <thread>

namespace hpe::cuda_hooks {

using clock = std::chrono::steady_clock;

// Returns the event after the first of most_ahead_ early launches; null if the stream has fewer.
CUevent launch_pace::oldest(CUstream stream) {
  const lock_guard lock(mutex_);
  if (stream != stream_ || ends_.size() < most_ahead_) return nullptr;
  // Older events do not matter: when the event returned here is reached, fewer than most_ahead_ launches are
  // unfinished.
  while (ends_.size() > most_ahead_) {
    spare_.push_back(ends_.front());
    ends_.pop_front();
  }
  CUevent const first = ends_.front();
  ends_.pop_front();
  is_full_.store(false, std::memory_order_relaxed);
  return first;
}

void launch_pace::note_wait(CUevent event, bool was_ready, clock::duration passed) {
  const lock_guard lock(mutex_);
  if (was_ready)
    most_ahead_ = std::min(2 * most_ahead_, largest_ahead);
  else if (passed >= long_wait)
    most_ahead_ = least_ahead;
  waited_ += passed;
  if (passed >= longest_wait || waited_ >= longest_waits) is_over_.store(true, std::memory_order_relaxed);
  spare_.push_back(event);
}

void launch_pace::wait(CUstream stream) noexcept try {
  if (is_over_.load(std::memory_order_relaxed) || !is_full_.load(std::memory_order_relaxed)) return;
  CUevent const first = oldest(stream);
  if (first == nullptr) return;
  const device::cuda::uncaptured here(cu_);
  const auto begin = clock::now();
  auto passed = clock::duration::zero();
  const bool was_ready = cu_.cuEventQuery(first) != CUDA_ERROR_NOT_READY;
  while (!was_ready && cu_.cuEventQuery(first) == CUDA_ERROR_NOT_READY && passed < longest_wait) {
    std::this_thread::yield();
    passed = clock::now() - begin;
  }
  note_wait(first, was_ready, passed);
} catch (const std::bad_alloc&) {  // the event is lost
}

void launch_pace::queued(CUstream stream) noexcept try {
  if (is_over_.load(std::memory_order_relaxed)) return;
  const device::cuda::uncaptured here(cu_);
  const lock_guard lock(mutex_);
  if (stream != stream_) {
    spare_.insert(spare_.end(), ends_.begin(), ends_.end());
    ends_.clear();
    stream_ = stream;
  }
  CUevent end = nullptr;
  if (spare_.empty()) {
    if (cu_.cuEventCreate(&end, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) return;
  } else {
    end = spare_.back();
    spare_.pop_back();
  }
  ends_.push_back(end);
  is_full_.store(ends_.size() >= most_ahead_, std::memory_order_relaxed);
  cu_.cuEventRecord(end, stream);
} catch (const std::bad_alloc&) {  // the launch does not count
}

}  // namespace hpe::cuda_hooks
