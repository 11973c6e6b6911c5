#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <string>
#include <vector>

#include "runtime/base/thread_safety.h"
#include "runtime/core/operations/launch_planner.h"
#include "runtime/device/cuda/driver.h"
#include "runtime/trace/spread_table.h"

namespace hpe::cuda_hooks {

/// Measures the time of launches, with an event before and an event after each launch. If a kernel, spread or on one
/// device, runs more slowly than predicted, the planner uses the measured times to change how later launches of this
/// kernel run. hpe run --spread --explain prints the times. Thread-safe; the program's context must be current in all
/// calls.
class launch_clock {
 public:
  struct timed_launch {
    std::string kernel, reason;
    unsigned devices = 1;
    spread::planner::measurement measured;  // if measured.record is null, the planner does not use the time
  };

  launch_clock(const device::cuda::driver& cu, core::launch_planner* planner)
      : cu_(cu), planner_(planner), table_(trace::spread_table::active()) {}

  /// Whether hpe measures all launches, for the table of --explain.
  [[nodiscard]] bool explains() const { return table_ != nullptr; }
  /// To be called before a launch is queued on a stream that is not in a capture. Returns the event before the launch,
  /// or null if hpe does not measure the launch.
  [[nodiscard]] CUevent begins(CUstream stream);
  /// To be called when the launch has been queued after the event that begins() returned. If the planner needs the time
  /// for its next decision, waits for the end of the launch. The wait lasts at most four times the predicted time and
  /// at most 0.1 s, because the kernel may wait for a later action of the program.
  void ends(CUevent begun, CUstream stream, timed_launch what) noexcept;
  /// To be called before a launch is decided. Passes the times of measured launches that have ended to the planner.
  /// Costs one load if no measured launch is open; otherwise, asks the driver at most every 50 us.
  void look() noexcept;
  /// Counts a launch that cannot be measured, for the table of --explain.
  void counts(const timed_launch& what) noexcept;
  /// Waits for the measured launches that are not in the table of --explain yet, and destroys the events. The program
  /// may launch kernels after this call.
  void finish();

 private:
  struct open_launch {
    CUevent begin = nullptr, end = nullptr;
    timed_launch what;
  };
  [[nodiscard]] CUevent take() HPE_REQUIRES(mutex_);
  void settle(std::size_t most_left) HPE_REQUIRES(mutex_);
  void tell(const timed_launch& what, double seconds) noexcept;
  void await(CUevent end, const spread::way_record::prediction& predicted) const;

  const device::cuda::driver& cu_;
  core::launch_planner* const planner_;
  trace::spread_table* const table_;
  std::atomic<std::size_t> known_open_{0};  // the size of open_
  std::atomic<std::chrono::steady_clock::time_point> looked_{};
  mutex mutex_;  // locked before the planner's mutex
  std::deque<open_launch> open_ HPE_GUARDED_BY(mutex_);
  std::vector<CUevent> spare_ HPE_GUARDED_BY(mutex_);
  std::size_t events_ HPE_GUARDED_BY(mutex_) = 0;
};

}  // namespace hpe::cuda_hooks
