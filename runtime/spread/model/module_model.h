#pragma once

/// The facts about a module's kernels that hpe needs to launch the kernels over several devices.

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "runtime/ptx/patch/patch.h"
#include "runtime/spread/model/kernel_model.h"

namespace hpe::spread {

class module_model {
 public:
  using choice = std::function<bool(const std::string& name)>;
  /// Describes the kernels for which wanted(name) returns true; describes all kernels if `wanted` is empty.
  explicit module_model(const std::shared_ptr<const ptx::program>& program, const choice& wanted = {});

  struct kernel {
    std::unique_ptr<kernel_model> model;
    ptx::patch::patched_kernel patched;
    std::string obstacle;  // why the patched texts omit the kernel; empty if they contain the kernel
    /// Why the kernel stays on one GPU in a program that does not call hpe: `obstacle`, the use of variables, or
    /// accesses to memory that hpe cannot attribute to an array. Empty if the kernel may be spread.
    std::string obstacle_in_programs;
  };
  /// Returns the kernels by their names in the PTX.
  [[nodiscard]] const std::map<std::string, kernel>& kernels() const { return kernels_; }
  /// Returns the patched texts, whose kernels can run a part of their grid (patch.h), and the tables of variables of
  /// these texts.
  [[nodiscard]] const ptx::patch::patched_module& patched() const { return patched_; }

 private:
  std::map<std::string, kernel> kernels_;
  ptx::patch::patched_module patched_;
};

}  // namespace hpe::spread
