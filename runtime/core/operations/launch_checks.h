#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/function_ref.h"
#include "runtime/check/declared_accesses.h"
#include "runtime/check/reports.h"
#include "runtime/core/operations/copier.h"
#include "runtime/core/operations/launcher.h"

namespace hpe::core {

/// Checks launches of hpe's own interface on soft devices (HPE_CHECK): compares what kernels access with what their
/// launches declare. Launches are checked one after the other, so each has ended when its call returns. Thread-safe.
class launch_checks {
 public:
  /// `devices`: soft devices. Throws as check::findings_report.
  launch_checks(const options& chosen, device::device_set& devices, allocator& memory, copier& copies);

  /// Makes the calling thread the only one that launches kernels of PTX on the device, and does not check its launches,
  /// until it calls take_races().
  void record(unsigned device);
  /// Visits the accesses of kernels of PTX since the last call for this device.
  void take(unsigned device, function_ref<void(const device::recorded_stretch&)> visit);
  /// Returns the races in the launches whose accesses take() has visited.
  [[nodiscard]] std::vector<device::recorded_race> take_races(unsigned device);

  /// Checks a launch of a kernel of PTX, which `queue` queues.
  timepoint run(unsigned device, check::checked_operation what, const work_usage& usage,
                function_ref<timepoint()> queue);
  /// Checks a launch of a kernel of a shared object, whose accesses are not recorded: compares the memory that the
  /// launch declares as only read with its bytes before the launch.
  timepoint run_function(const std::string& kernel, const work_usage& usage, function_ref<timepoint()> queue);

  /// Remembers the place where the program allocates memory by calling `function`.
  void allocated(const void* base, const char* function);

  [[nodiscard]] std::vector<check::finding> take_findings() { return findings_.take(); }
  [[nodiscard]] const check::findings_report& report() const noexcept { return report_; }

 private:
  struct recording {
    std::mutex alone;                       // locked while a launch runs
    std::atomic<std::thread::id> caller{};  // the thread that has called record()
    std::vector<timepoint> concurrent;      // unchecked launches that may still run; used with `alone` locked
  };
  /// Memory that a launch declares as only read, with its bytes.
  struct read_memory {
    const std::byte* begin = nullptr;
    std::vector<std::byte> bytes;
  };

  [[nodiscard]] std::vector<check::declared_range> ranges_of(std::span<const hpeAccess> accesses) const;
  [[nodiscard]] std::vector<read_memory> read_only(std::span<const hpeAccess> accesses) const;
  [[nodiscard]] check::access_range changed(const read_memory& before) const;

  device::device_set& devices_;
  device::ptx_capability& ptx_;
  allocator& memory_;
  copier& copies_;
  check::findings_report report_;
  check::declared_accesses findings_;
  std::mutex one_at_a_time_;          // held while a launch is checked
  std::deque<recording> recordings_;  // by device
};

}  // namespace hpe::core
