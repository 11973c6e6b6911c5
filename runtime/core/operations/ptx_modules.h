#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "hpe/ptx.h"
#include "runtime/core/operations/copier.h"
#include "runtime/core/operations/launcher.h"

namespace hpe::core {

/// Modules of PTX: their variables, which are allocations like any other, and launches of their kernels. Any thread.
class ptx_modules {
 public:
  ptx_modules(const environment& env, allocator& memory, copier& copies, launcher& kernels)
      : env_(env), memory_(memory), copies_(copies), launcher_(kernels) {}

  [[nodiscard]] hpeModule load(std::vector<std::string> texts);
  /// Waits for the launches.
  void unload(hpeModule module);

  struct variable {
    void* address = nullptr;
    std::size_t size = 0;
  };
  [[nodiscard]] variable find_variable(hpeModule module, const std::string& name, unsigned device) const;
  [[nodiscard]] hpeKernelInfo describe(hpeKernel kernel) const;

  /// See hpeLaunchGrid.
  timepoint launch(unsigned device, hpeKernel kernel, const device::shape& shape, std::span<const std::byte> parameters,
                   work_usage usage);

 private:
  void place(hpeModule_st& module);
  void free_variables(hpeModule_st& module) noexcept;
  void free_part(std::byte* part) noexcept;

  environment env_;
  allocator& memory_;
  copier& copies_;
  launcher& launcher_;
};

}  // namespace hpe::core
