#pragma once

#include <deque>
#include <string>
#include <vector>

#include "runtime/device/cuda/driver.h"
#include "runtime/trace/spread_table.h"

namespace hpe::cuda_hooks {

/// Measures launches for the table of hpe run --spread --explain, by events before and behind each. Does nothing
/// without that option. For one thread at a time, with the program's context current.
class launch_clock {
 public:
  explicit launch_clock(const device::cuda::driver& cu) : cu_(cu), table_(trace::spread_table::active()) {}

  [[nodiscard]] bool runs() const { return table_ != nullptr; }
  /// A launch is about to be queued on a stream that is not being captured.
  void begins(CUstream stream);
  /// It has been queued.
  void ends(CUstream stream, const std::string& kernel, unsigned devices, const std::string& reason);
  /// A launch that cannot be measured.
  void counts(const std::string& kernel, const std::string& reason);
  /// Waits for the launches that are not in the table yet, and destroys the events. Launches may follow.
  void finish();

 private:
  struct measured {
    CUevent begin = nullptr, end = nullptr;
    std::string kernel, reason;
    unsigned devices = 1;
  };
  [[nodiscard]] CUevent take();
  void settle(std::size_t most_left);

  const device::cuda::driver& cu_;
  trace::spread_table* const table_;
  CUevent begun_ = nullptr;
  std::deque<measured> open_;
  std::vector<CUevent> spare_;
};

}  // namespace hpe::cuda_hooks
