#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>

#include "runtime/core/memory/allocator.h"
#include "runtime/core/memory/loan_pool.h"
#include "runtime/core/operations/announcer.h"
#include "runtime/core/operations/copier.h"
#include "runtime/core/operations/host_access.h"
#include "runtime/core/operations/launcher.h"
#include "runtime/core/operations/ptx_modules.h"
#include "runtime/core/operations/spreader.h"
#include "runtime/core/sharing/exports.h"
#include "runtime/core/sharing/imports.h"
#include "runtime/device/observer.h"
#include "runtime/work/host_spill.h"
#include "runtime/work/residency.h"

namespace hpe::core {

/// The composition root: creates, connects and owns all parts of the runtime. The C interface (api/*.cpp) is its main
/// user.
class runtime {
 public:
  explicit runtime(const options& chosen);
  ~runtime();
  runtime(const runtime&) = delete;
  runtime& operator=(const runtime&) = delete;

  /// Returns the runtime of this process. The first call starts the runtime. The runtime is never destroyed, because
  /// threads and static objects of the program may use it until the process ends; the devices are closed when the
  /// process ends. Throws HPE_ERROR_INITIALIZATION, or HPE_ERROR_FORKED in a child that was forked from a process with
  /// a runtime. If this call starts the runtime, it first calls `adjust`, which may change the options that were read
  /// from the environment.
  static runtime& instance(const std::function<void(options&)>& adjust = {});

  /// Returns the runtime if it was started in this process; otherwise nullptr. Does not start the runtime.
  [[nodiscard]] static runtime* started() noexcept;

  [[nodiscard]] const options& option() const noexcept { return option_; }
  [[nodiscard]] work::resources resources() const noexcept { return {*devices_, *engine_, *views_, *room_, *host_}; }
  [[nodiscard]] device::device_set& devices() const noexcept { return *devices_; }
  [[nodiscard]] memory::uvas& space() const noexcept { return *space_; }
  [[nodiscard]] memory::granule_table& granules() const noexcept { return *granules_; }
  [[nodiscard]] coherence::region_table& regions() const noexcept { return *regions_; }
  [[nodiscard]] coherence::announcements& announced() noexcept { return announced_; }
  [[nodiscard]] counters& count() noexcept { return count_; }
  [[nodiscard]] allocator& memory() noexcept { return *allocator_; }
  [[nodiscard]] launcher& kernels() noexcept { return *launcher_; }
  [[nodiscard]] copier& copies() noexcept { return *copier_; }
  [[nodiscard]] ptx_modules& ptx() noexcept { return *ptx_; }
  [[nodiscard]] spreader& spread() noexcept { return *spreader_; }
  /// Returns the checks of the program's launches (HPE_CHECK); null if the program is not checked.
  [[nodiscard]] launch_checks* checks() const noexcept { return checks_.get(); }
  [[nodiscard]] announcer& announced_work() noexcept { return *announcer_; }
  [[nodiscard]] host_access& for_host_code() noexcept { return *host_access_; }

  [[nodiscard]] exports& exported() noexcept { return *exports_; }
  [[nodiscard]] imports& imported() noexcept { return *imports_; }

  /// Waits for all work queued on a device (device < 0: on all devices), then throws the first failure that was not
  /// reported yet.
  void synchronize(int device);
  /// Waits for work of the devices that the runtime has not queued (as in synchronize), and returns its first failure.
  using other_work = std::optional<error> (*)(int device, unsigned device_count);
  /// Makes synchronize() also wait for other work.
  void synchronizes_also(other_work wait) noexcept { waits_also_ = wait; }
  /// Waits for one piece of work. If the work failed, returns its error.
  [[nodiscard]] std::optional<error> wait(timepoint point);
  /// Makes the process write the output of kernels (printf) also at exit. At exit, the process first waits up to two
  /// seconds for running kernels.
  void write_output_at_exit();

 private:
  options option_;
  counters& count_;
  std::unique_ptr<memory::uvas> space_;
  std::unique_ptr<memory::granule_table> granules_;
  std::unique_ptr<coherence::region_table> regions_;
  std::unique_ptr<device::device_set> devices_;
  std::unique_ptr<device::command_observer> trace_;  // observes the commands of devices_; null if nothing is recorded
  std::unique_ptr<transfer::engine> engine_;
  std::unique_ptr<work::host_view> views_;
  std::unique_ptr<work::host_spill> host_;
  node::exporter exporter_;
  work::sharing sharing_{exporter_};
  std::unique_ptr<work::residency> room_;
  coherence::announcements announced_;
  std::unique_ptr<fault::service> faults_;
  node::neighbours neighbours_;
  std::unique_ptr<memory::segment_allocator> foreign_addresses_;
  std::unique_ptr<allocator> allocator_;
  std::unique_ptr<launcher> launcher_;
  std::unique_ptr<announcer> announcer_;
  std::unique_ptr<copier> copier_;
  std::unique_ptr<launch_checks> checks_;
  std::unique_ptr<ptx_modules> ptx_;
  std::unique_ptr<spreader> spreader_;
  std::once_flag at_exit_;
  std::atomic<other_work> waits_also_{nullptr};
  std::unique_ptr<loan_pool> loans_;
  std::unique_ptr<host_access> host_access_;
  std::unique_ptr<exports> exports_;
  std::unique_ptr<imports> imports_;
};

}  // namespace hpe::core
