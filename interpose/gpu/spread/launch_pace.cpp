#include "interpose/gpu/spread/launch_pace.h"

#include <algorithm>
#include <new>
#include <thread>

namespace hpe::cuda_hooks {

// Returns the first of the last most_groups groups, and removes it; a group without an event if there are fewer groups.
launch_pace::group launch_pace::oldest(CUstream stream) {
  const lock_guard lock(mutex_);
  if (stream != stream_ || groups_.size() < most_groups) return {};
  // Older groups do not matter: when the one returned here has ended, fewer than most_groups are unfinished.
  for (; groups_.size() > most_groups; groups_.pop_front()) spare_.push_back(groups_.front().end);
  const group first = groups_.front();
  groups_.pop_front();
  is_full_.store(false, std::memory_order_relaxed);
  return first;
}

void launch_pace::note_wait(const group& ended, bool was_ready, clock::duration passed) {
  const auto since_queued = clock::now() - ended.queued;
  const lock_guard lock(mutex_);
  const bool is_one = group_size_ == 1;
  if (was_ready || since_queued < short_time)
    group_size_ = std::min(2 * group_size_, largest_group);
  else if (since_queued >= long_time)
    group_size_ = 1;
  waited_ += passed;
  if ((passed >= longest_wait && is_one) || waited_ >= longest_waits) is_over_.store(true, std::memory_order_relaxed);
  spare_.push_back(ended.end);
}

void launch_pace::wait(CUstream stream) noexcept try {
  if (is_over_.load(std::memory_order_relaxed) || !is_full_.load(std::memory_order_relaxed)) return;
  const group first = oldest(stream);
  if (first.end == nullptr) return;
  const device::cuda::uncaptured here(cu_);
  const auto begin = clock::now();
  auto passed = clock::duration::zero();
  const bool was_ready = cu_.cuEventQuery(first.end) != CUDA_ERROR_NOT_READY;
  while (!was_ready && cu_.cuEventQuery(first.end) == CUDA_ERROR_NOT_READY && passed < longest_wait) {
    std::this_thread::yield();
    passed = clock::now() - begin;
  }
  note_wait(first, was_ready, passed);
} catch (const std::bad_alloc&) {  // the event is lost
}

void launch_pace::queued(CUstream stream) noexcept try {
  if (is_over_.load(std::memory_order_relaxed)) return;
  const lock_guard lock(mutex_);
  if (stream != stream_) {
    for (const group& each : groups_) spare_.push_back(each.end);
    groups_.clear();
    in_last_group_ = 0;
    stream_ = stream;
  }
  if (++in_last_group_ < group_size_) return;
  in_last_group_ = 0;
  const device::cuda::uncaptured here(cu_);
  CUevent end = nullptr;
  if (spare_.empty()) {
    if (cu_.cuEventCreate(&end, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) return;
  } else {
    end = spare_.back();
    spare_.pop_back();
  }
  groups_.push_back({end, clock::now()});
  is_full_.store(groups_.size() >= most_groups, std::memory_order_relaxed);
  cu_.cuEventRecord(end, stream);
} catch (const std::bad_alloc&) {  // the launch does not count
}

}  // namespace hpe::cuda_hooks
