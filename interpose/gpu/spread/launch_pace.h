#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <vector>

#include "runtime/base/thread_safety.h"
#include "runtime/device/cuda/driver.h"

namespace hpe::cuda_hooks {

/// Lets a program queue only few launches ahead of the GPU while threads of hpe analyse the program's kernels, plan
/// their launches and load code for several GPUs. Otherwise, a program that queues all its launches at once would queue
/// them on one GPU before these threads are ready. The GPU always has queued work, so it does not become slower.
/// Thread-safe; the context of the stream must be current.
class launch_pace {
 public:
  explicit launch_pace(const device::cuda::driver& cu) : cu_(cu) {}

  /// To be called before a launch is decided. If the stream has four groups of early launches, waits until the GPU has
  /// finished the first group. A group is one launch, or several launches if the GPU finishes them in a short time. If
  /// the GPU does not finish one launch in 0.3 s, or if the waits have taken 2 s in all, this object waits no more,
  /// because a kernel may wait for a later action of the program.
  void wait(CUstream stream) noexcept;
  /// To be called after an early launch (planner::is_early) has been queued. Forgets the launches on other streams.
  void queued(CUstream stream) noexcept;

 private:
  using clock = std::chrono::steady_clock;
  struct group {
    CUevent end = nullptr;
    clock::time_point queued;
  };
  static constexpr std::size_t most_groups = 4;
  static constexpr unsigned largest_group = 16;
  // If a group ends within short_time after it was queued, the next groups are larger. If a group takes long_time, the
  // next groups have one launch each, so that few launches are queued before a new plan is ready.
  static constexpr std::chrono::microseconds short_time{500}, long_time{2000};
  static constexpr std::chrono::milliseconds longest_wait{300}, longest_waits{2000};

  [[nodiscard]] group oldest(CUstream stream);
  void note_wait(const group& ended, bool was_ready, clock::duration passed);

  const device::cuda::driver& cu_;
  std::atomic<bool> is_over_{false}, is_full_{false};
  mutex mutex_;
  CUstream stream_ HPE_GUARDED_BY(mutex_) = nullptr;
  unsigned group_size_ HPE_GUARDED_BY(mutex_) = 1;
  unsigned in_last_group_ HPE_GUARDED_BY(mutex_) = 0;  // launches since the last event
  std::deque<group> groups_ HPE_GUARDED_BY(mutex_);
  std::vector<CUevent> spare_ HPE_GUARDED_BY(mutex_);
  clock::duration waited_ HPE_GUARDED_BY(mutex_){};
};

}  // namespace hpe::cuda_hooks
