#pragma once

#include <array>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/thread_safety.h"
#include "runtime/core/operations/launch_planner.h"
#include "runtime/core/operations/ptx_modules.h"
#include "runtime/spread/module_model.h"

namespace hpe::core {

/// Launches of kernels of PTX of which several devices run parts of the grid. A module gets a second one for it, with
/// patched kernels (runtime/ptx/patch), which use the variables that the first module has on one device. Thread-safe.
class spreader {
 public:
  /// cut: the option HPE_SPREAD_CUT.
  spreader(device::device_set& devices, allocator& memory, copier& copies, launcher& kernels, ptx_modules& modules,
           const std::string& cut);

  /// Blocks that a device runs: `blocks` along each axis, from the block with the index `first` on.
  struct part {
    unsigned device = 0;
    std::array<std::uint32_t, 3> first{}, blocks{};
    std::vector<launch_planner::replaced_pointer> replacing{};
  };
  struct result {
    std::vector<part> parts;
    std::string reason;               // why it is cut like this, or not at all
    std::vector<timepoint> finished;  // of each part
    std::vector<replicas::hold> holds;
  };

  /// See hpeKernelOfProgram. file: the program or library that holds the kernel.
  [[nodiscard]] hpeKernel find_in_file(const std::string& file, const std::string& name);

  /// Why the kernel has to run on one device; empty if it may be spread. Lives as long as the module.
  [[nodiscard]] const std::string& obstacle_of(hpeKernel kernel);

  /// See hpeLaunchOver. There must be at least one device.
  result launch(std::span<const unsigned> devices, hpeKernel kernel, const device::shape& shape,
                std::span<const std::byte> parameters);
  /// See hpeLaunchParts. The variables are those of the device `first`. Returns the end of each part.
  std::vector<timepoint> launch_parts(std::span<const part> parts, unsigned first, hpeKernel kernel,
                                      const device::shape& shape, std::span<const std::byte> parameters);

  /// The copies of arrays that launches have made.
  [[nodiscard]] replicas& copies_of_arrays() noexcept { return replicas_; }

  /// To be called before a module is unloaded.
  void unload(hpeModule module);

 private:
  struct spread_kernel {
    const spread::module_model::kernel* code = nullptr;  // how it uses memory, and its patched form
    std::string obstacle;
    hpeKernel in_parts = nullptr;
  };
  struct spread_module {
    explicit spread_module(const std::shared_ptr<const ptx::program>& program) : code(program) {}
    const spread::module_model code;
    std::map<std::string, spread_kernel> kernels;
    hpeModule module = nullptr;  // of the patched kernels; null if there are none
    mutex variables_mutex;
    int variables_of HPE_GUARDED_BY(variables_mutex) = -1;  // the device whose variables the tables name
  };
  /// Memory that a kernel uses through its parameters.
  struct usage {
    std::vector<hpeAccess> accesses;
    bool everything = false;
    bool others = false;               // memory that is not hpe's
    bool has_atomics = false;          // atomic operations on global memory
    bool has_atomics_on_host = false;  // some of them perhaps on host memory
  };

  [[nodiscard]] result plan(const spread_kernel& kernel, std::span<const unsigned> devices, const device::shape& shape,
                            std::span<const std::byte> parameters, const usage& used);
  launch_planner& planner_of(std::span<const unsigned> devices);
  spread_module& module_of(hpeModule module);
  spread_kernel& find(hpeKernel kernel);
  [[nodiscard]] std::unique_ptr<spread_module> make(hpeModule module) HPE_REQUIRES(mutex_);
  [[nodiscard]] usage usage_of(const spread_kernel& kernel, std::span<const std::byte> parameters) const;
  /// Why this launch has to run on one device.
  [[nodiscard]] std::string obstacle_of(const spread_kernel& kernel, const device::shape& shape,
                                        std::span<const unsigned> devices, const usage& used) const;
  /// Makes the variables of the patched module those of the first one on a device.
  void bring_variables(const spread_kernel& kernel, hpeModule from, unsigned device, spread_module& to,
                       std::span<const part> parts) HPE_REQUIRES(to.variables_mutex);

  device::device_set& devices_;
  allocator& memory_;
  copier& copies_;
  launcher& launcher_;
  ptx_modules& modules_;
  const bool cuts_evenly_;
  replicas replicas_;
  mutex mutex_;
  std::map<std::vector<unsigned>, std::unique_ptr<launch_planner>> planners_ HPE_GUARDED_BY(mutex_);
  std::map<std::pair<std::string, std::string>, hpeKernel> of_files_ HPE_GUARDED_BY(mutex_);  // by file and name
  std::set<hpeModule> duplicates_ HPE_GUARDED_BY(mutex_);  // modules of which the program has its own
  std::map<hpeModule, std::unique_ptr<spread_module>> all_ HPE_GUARDED_BY(mutex_);
};

}  // namespace hpe::core
