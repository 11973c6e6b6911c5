#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/base/function_ref.h"
#include "runtime/base/thread_safety.h"
#include "runtime/check/declared_accesses.h"
#include "runtime/check/reports.h"
#include "runtime/core/operations/launcher.h"
#include "runtime/work/fingerprints.h"

namespace hpe::core {

/// Checks launches of hpe's own interface (HPE_CHECK): compares the accesses of kernels with those that their launches
/// declare.
/// If the accesses of a kernel are not recorded, compares the memory that a launch declares as only read before and
/// after the launch. A launch that is checked has ended when its call returns. Thread-safe.
class launch_checks {
 public:
  /// Throws as check::findings_report.
  launch_checks(const options& chosen, device::device_set& devices, allocator& memory);

  /// Whether the devices record the accesses of kernels of PTX.
  [[nodiscard]] bool records() const noexcept { return records_; }
  /// Whether the program has launched a kernel.
  [[nodiscard]] bool has_launches() const noexcept { return has_launches_; }

  /// Makes the calling thread the only one that launches kernels of PTX on the device, and does not check its launches,
  /// until it calls take_races().
  void record(unsigned device);
  /// Visits the accesses of kernels of PTX since the last call for this device.
  void take(unsigned device, function_ref<void(const device::recorded_stretch&)> visit);
  /// Returns the races in the launches whose accesses take() has visited.
  [[nodiscard]] std::vector<device::recorded_race> take_races(unsigned device);

  using describe_function = function_ref<check::checked_operation()>;
  using queue_function = function_ref<timepoint(launch_frame*)>;
  /// Checks a launch, which `queue` queues. On devices that record no accesses, checks the kernel's first three
  /// launches and those whose number is a power of two, or all (HPE_CHECK_LAUNCHES). `describe`: the launch, without
  /// its place.
  timepoint run(unsigned device, hpeKernel kernel, const work_usage& usage, describe_function describe,
                queue_function queue);
  /// Checks work that a function of the program queues, like the launches of a kernel whose accesses are not recorded.
  /// Work of the same function that is queued from the same place counts as launches of one kernel. call: the name of
  /// hpe's function.
  timepoint run(hpeEnqueueFunction function, const char* call, const work_usage& usage, queue_function queue);

  /// Compares accesses of work that has run, all reads included, with those that the program declares for the work, in
  /// the allocations with declared bytes.
  void compare(const check::operation_ptr& work, std::span<const check::access_range> recorded,
               std::span<const hpeAccess> accesses);

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

  timepoint run_recorded(unsigned device, const work_usage& usage, describe_function describe, queue_function queue);
  timepoint run_compared(const work_usage& usage, check::checked_operation what, queue_function queue);
  /// Counts a launch of some code, from a place if the code alone does not tell launches apart. Returns whether it is
  /// one of those that are compared.
  [[nodiscard]] bool is_chosen(const void* code, std::uint64_t place = 0);
  [[nodiscard]] std::vector<check::declared_range> ranges_of(std::span<const hpeAccess> accesses) const;

  device::device_set& devices_;
  device::ptx_capability& ptx_;
  allocator& memory_;
  const bool records_;
  const bool all_;
  std::atomic<bool> has_launches_{false};
  check::findings_report report_;
  check::declared_accesses findings_;
  std::mutex one_at_a_time_;          // held while a recorded launch is checked
  std::deque<recording> recordings_;  // by device
  work::fingerprints prints_;
  mutex counting_;
  std::map<std::pair<const void*, std::uint64_t>, std::uint64_t> launches_ HPE_GUARDED_BY(counting_);
};

}  // namespace hpe::core
