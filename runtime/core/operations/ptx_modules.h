#pragma once

#include <memory>
#include <string>
#include <vector>

#include "hpe/ptx.h"
#include "runtime/base/thread_safety.h"
#include "runtime/core/operations/copier.h"
#include "runtime/core/operations/launch_checks.h"
#include "runtime/core/operations/launcher.h"
#include "runtime/ptx/build/access_recording.h"

namespace hpe::core {

/// Loads modules of PTX, whose variables are ordinary allocations, and launches their kernels. Thread-safe.
class ptx_modules {
 public:
  /// checks: null if the program's launches are not checked.
  ptx_modules(device::device_set& devices, allocator& memory, copier& copies, launcher& kernels, launch_checks* checks)
      : devices_(devices), memory_(memory), copies_(copies), launcher_(kernels), checks_(checks) {}

  /// reads: which reads are recorded, if the program is checked (HPE_CHECK).
  [[nodiscard]] hpeModule load(std::vector<std::string> texts,
                               device::ptx_recording reads = device::ptx_recording::first_reads);
  /// Waits for launches of the module's kernels, and unloads the module.
  void unload(hpeModule module);

  struct variable {
    void* address = nullptr;
    std::size_t size = 0;
  };
  [[nodiscard]] variable find_variable(hpeModule module, const std::string& name, unsigned device) const;
  [[nodiscard]] hpeKernelInfo describe(hpeKernel kernel) const;

  /// Returns the parsed PTX texts of a module.
  [[nodiscard]] std::shared_ptr<const ptx::program> program_of(hpeModule module) const;
  /// Whether the module has variables that find_variable can find.
  [[nodiscard]] bool has_variables(hpeModule module) const;
  /// Throws HPE_ERROR_INVALID_ARGUMENT if the kernel or a device does not support the shape, or if the parameters do
  /// not match the kernel.
  void require_launchable(hpeKernel kernel, const device::shape& shape, std::size_t parameter_bytes) const;
  /// Appends to `to` the accesses of a launch to the module's variables on a device. hpe adds these accesses to each
  /// launch, because kernels use variables without a parameter, and a launch need not name them.
  void add_accesses(hpeModule module, unsigned device, std::vector<hpeAccess>& to) const;
  /// Makes unload() wait for these launches of the module's kernels.
  void record(hpeModule module, std::span<const timepoint> launches) noexcept;

  /// See hpeLaunchGrid.
  timepoint launch(unsigned device, hpeKernel kernel, const device::shape& shape, std::span<const std::byte> parameters,
                   work_usage usage);

  /// Visits the sites (ptx::access_site) at which a launch of the kernel may access memory: those of the kernel, then
  /// those of the functions that kernels of its module call. `place` is "file:line" or, without line information, the
  /// line of the PTX. Returns whether the module may write memory without a record.
  using site_function = function_ref<void(std::uint8_t number, ptx::recorded_use use, const std::string& place)>;
  bool visit_sites(hpeKernel kernel, site_function visit) const;

  /// Writes the new output of launches that have ended to the program's standard output and standard error. Uses stdio,
  /// so that this output and the program's own output keep their order.
  void write_output();

 private:
  [[nodiscard]] check::checked_operation describe_launch(hpeKernel kernel, std::span<const std::byte> parameters) const;
  void place_variables(hpeModule_st& module);
  void free_variables(hpeModule_st& module) noexcept;
  void free_part(std::byte* part) noexcept;

  device::device_set& devices_;
  allocator& memory_;
  copier& copies_;
  launcher& launcher_;
  launch_checks* const checks_;
  mutex output_;  // held while output is fetched and written, so that threads do not change the order of the output
};

}  // namespace hpe::core
