#pragma once

#include <memory>
#include <string>
#include <vector>

#include "hpe/ptx.h"
#include "runtime/base/thread_safety.h"
#include "runtime/core/operations/copier.h"
#include "runtime/core/operations/launcher.h"

namespace hpe::core {

/// Modules of PTX: their variables, which are ordinary allocations, and launches of their kernels. Thread-safe.
class ptx_modules {
 public:
  ptx_modules(device::device_set& devices, allocator& memory, copier& copies, launcher& kernels)
      : devices_(devices), memory_(memory), copies_(copies), launcher_(kernels) {}

  [[nodiscard]] hpeModule load(std::vector<std::string> texts);
  /// Waits for launches of the module's kernels.
  void unload(hpeModule module);

  struct variable {
    void* address = nullptr;
    std::size_t size = 0;
  };
  [[nodiscard]] variable find_variable(hpeModule module, const std::string& name, unsigned device) const;
  [[nodiscard]] hpeKernelInfo describe(hpeKernel kernel) const;

  /// The texts of a module as read.
  [[nodiscard]] std::shared_ptr<const ptx::program> program_of(hpeModule module) const;
  /// Whether find_variable finds the module's variables.
  [[nodiscard]] bool has_variables(hpeModule module) const;
  /// Throws HPE_ERROR_INVALID_ARGUMENT for a shape or parameters that the kernel or a device cannot have.
  void require_launchable(hpeKernel kernel, const device::shape& shape, std::size_t parameter_bytes) const;
  /// Adds the module's variables on a device, which the program cannot name, because only the kernels know them.
  void add_accesses(hpeModule module, unsigned device, std::vector<hpeAccess>& to) const;
  /// Makes unload wait for launches of the module's kernels.
  static void record(hpeModule module, std::span<const timepoint> launches);

  /// See hpeLaunchGrid.
  timepoint launch(unsigned device, hpeKernel kernel, const device::shape& shape, std::span<const std::byte> parameters,
                   work_usage usage);

  /// Writes the new output of launches that have ended to the program's standard output and standard error: through
  /// stdio, so that it is in order with the program's own output.
  void write_output();

 private:
  void place_variables(hpeModule_st& module);
  void free_variables(hpeModule_st& module) noexcept;
  void free_part(std::byte* part) noexcept;

  device::device_set& devices_;
  allocator& memory_;
  copier& copies_;
  launcher& launcher_;
  mutex output_;  // keeps the order in which output is taken
};

}  // namespace hpe::core
