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

  /// To be called before a launch is decided. If the stream has a number of early launches, waits until the GPU has
  /// finished the first of them. This number is four, and grows while the GPU finishes launches sooner than the program
  /// queues them. If the GPU does not finish a launch in 0.3 s, or if the waits have taken 2 s in all, this object
  /// waits no more, because a kernel may wait for a later action of the program.
  void wait(CUstream stream) noexcept;
  /// To be called after an early launch (planner::is_early) has been queued. Forgets the launches on other streams.
  void queued(CUstream stream) noexcept;

 private:
  static constexpr std::size_t least_ahead = 4, largest_ahead = 64;
  static constexpr std::chrono::milliseconds long_wait{1}, longest_wait{300}, longest_waits{2000};

  [[nodiscard]] CUevent oldest(CUstream stream);
  void note_wait(CUevent event, bool was_ready, std::chrono::steady_clock::duration passed);

  const device::cuda::driver& cu_;
  std::atomic<bool> is_over_{false}, is_full_{false};
  mutex mutex_;
  CUstream stream_ HPE_GUARDED_BY(mutex_) = nullptr;
  std::size_t most_ahead_ HPE_GUARDED_BY(mutex_) = least_ahead;
  std::deque<CUevent> ends_ HPE_GUARDED_BY(mutex_);
  std::vector<CUevent> spare_ HPE_GUARDED_BY(mutex_);
  std::chrono::steady_clock::duration waited_ HPE_GUARDED_BY(mutex_){};
};

}  // namespace hpe::cuda_hooks
