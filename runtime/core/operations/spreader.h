#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/choices.h"
#include "runtime/base/thread_safety.h"
#include "runtime/core/operations/launch_planner.h"
#include "runtime/core/operations/ptx_modules.h"
#include "runtime/core/operations/zero_copy_trial.h"
#include "runtime/spread/model/module_model.h"

namespace hpe::core {

/// Launches kernels of PTX on several devices, each of which runs a part of the grid. For each module, the spreader
/// loads a second module of patched kernels (runtime/ptx/patch). The patched kernels use the variables of the first
/// module on one device. Thread-safe.
class spreader {
 public:
  /// zero_copy: see the option of this name (options.def).
  spreader(device::device_set& devices, allocator& memory, copier& copies, launcher& kernels, ptx_modules& modules,
           cut_method cut, bool zero_copy);

  /// The blocks of the grid that a device runs: along each axis, `blocks` blocks from index `first`.
  struct launch_part {
    unsigned device = 0;
    std::array<std::uint32_t, 3> first{}, blocks{};
    std::vector<launch_planner::replaced_pointer> replacing{};
  };
  struct result {
    std::vector<launch_part> parts;
    std::string reason;               // why the launch was cut in this way, or why it was not cut
    std::vector<timepoint> finished;  // the end of each part
    std::vector<replicas::hold> holds;
  };

  /// See hpeKernelOfProgram. file: the program or library that contains the kernel.
  [[nodiscard]] hpeKernel find_in_file(const std::string& file, const std::string& name);

  /// Returns the reason why the kernel has to run on one device; empty if the kernel may be spread. The text is valid
  /// as long as the module.
  [[nodiscard]] const std::string& obstacle_of(hpeKernel kernel);

  /// See hpeLaunchOver. `devices` must not be empty. For a launch in many parts, `finished` contains only the ends of
  /// the last parts. If a part has failed before that, no further parts are queued, and `finished` begins with that
  /// part.
  result launch(std::span<const unsigned> devices, hpeKernel kernel, const device::shape& shape,
                std::span<const std::byte> parameters);
  /// See hpeLaunchParts. All parts use the variables of device `first`. Returns the point at which each part ends.
  std::vector<timepoint> launch_parts(std::span<const launch_part> parts, unsigned first, hpeKernel kernel,
                                      const device::shape& shape, std::span<const std::byte> parameters);

  /// Returns the replicas of arrays that launches use.
  [[nodiscard]] replicas& copies_of_arrays() noexcept { return replicas_; }

  /// Must be called before a module is unloaded.
  void unload(hpeModule module);

 private:
  struct spread_kernel {
    const spread::module_model::kernel* code = nullptr;  // the kernel's use of memory, and its patched code
    std::string obstacle;
    hpeKernel in_parts = nullptr;
  };
  struct spread_module {
    explicit spread_module(const std::shared_ptr<const ptx::program>& program) : code(program) {}
    const spread::module_model code;
    std::map<std::string, spread_kernel> kernels;
    hpeModule module = nullptr;  // contains the patched kernels; null if no kernel is patched
    mutex variables_mutex;
    int variables_of HPE_GUARDED_BY(variables_mutex) = -1;  // the device whose variables the patched module uses
  };
  /// The memory that a kernel uses through its parameters.
  struct usage {
    std::vector<hpeAccess> accesses;
    bool everything = false;
    bool others = false;               // whether a pointer points to memory that is not hpe memory
    bool has_atomics = false;          // whether the kernel has atomic operations on global memory
    bool has_atomics_on_host = false;  // whether some of these operations may be on host memory
  };

  [[nodiscard]] result plan(const spread_kernel& kernel, std::span<const unsigned> devices, const device::shape& shape,
                            std::span<const std::byte> parameters, const usage& used);
  /// Runs a launch, whose memory does not fit on the devices, in parts one after the other. refusal: the error of the
  /// attempt to run the launch as a whole; if the launch cannot run in parts either, the error message contains this
  /// text. A trial may show that the launch is faster with data in zero-copy memory.
  result launch_in_time(std::span<const unsigned> devices, hpeKernel kernel, const device::shape& shape,
                        std::span<const std::byte> parameters, const usage& used, const std::string& refusal);
  /// Runs a launch while zero-copy memory holds the data that does not fit: divided over the devices if possible, and
  /// otherwise on the first device. refusal: why the launch cannot run in parts one after the other; empty if it can.
  result launch_with_zero_copy(std::span<const unsigned> devices, hpeKernel kernel, const device::shape& shape,
                               std::span<const std::byte> parameters, const usage& used, const std::string& refusal);
  /// Whether several devices can run a launch at the same time while any of its data may be in zero-copy memory.
  [[nodiscard]] bool may_share_zero_copy(const spread_kernel& kernel, const device::shape& shape,
                                         std::span<const unsigned> devices, const usage& used) const;
  /// See launch_parts. memory: the memory that all parts use; nullopt: derived from the parameters.
  std::vector<timepoint> queue_parts(std::span<const launch_part> parts, unsigned first, hpeKernel kernel,
                                     const device::shape& shape, std::span<const std::byte> parameters,
                                     const std::optional<work_usage>& memory);
  launch_planner& planner_of(std::span<const unsigned> devices);
  spread_module& module_of(hpeModule module);
  spread_kernel& find(hpeKernel kernel);
  [[nodiscard]] std::unique_ptr<spread_module> make(hpeModule module) HPE_REQUIRES(mutex_);
  /// Adds the kernels of a module to `in`. `failure`: why their patched code cannot be loaded; empty: it is loaded.
  void find_kernels(hpeModule module, const std::string& failure, spread_module& in) HPE_REQUIRES(mutex_);
  [[nodiscard]] usage usage_of(const spread_kernel& kernel, std::span<const std::byte> parameters) const;
  /// Returns the reason why this launch has to run on one device; empty if it may be spread.
  [[nodiscard]] std::string obstacle_of(const spread_kernel& kernel, const device::shape& shape,
                                        std::span<const unsigned> devices, const usage& used) const;
  /// Makes the patched module use the original module's variables on a device.
  void bring_variables(const spread_kernel& kernel, hpeModule from, unsigned device, spread_module& to,
                       std::span<const launch_part> parts) HPE_REQUIRES(to.variables_mutex);

  device::device_set& devices_;
  allocator& memory_;
  copier& copies_;
  launcher& launcher_;
  ptx_modules& modules_;
  const bool cuts_evenly_;
  const bool zero_copy_;
  replicas replicas_;
  zero_copy_trial trial_;
  mutex mutex_;
  std::map<std::vector<unsigned>, std::unique_ptr<launch_planner>> planners_ HPE_GUARDED_BY(mutex_);
  std::map<std::pair<std::string, std::string>, hpeKernel> of_files_ HPE_GUARDED_BY(mutex_);  // by file and name
  std::set<hpeModule> duplicates_ HPE_GUARDED_BY(mutex_);  // modules from find_in_file; the program has its own copies
                                                           // of their variables
  std::map<hpeModule, std::unique_ptr<spread_module>> all_ HPE_GUARDED_BY(mutex_);
};

}  // namespace hpe::core
