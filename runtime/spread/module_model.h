#pragma once

/// The kernels of a module, as launches over several devices need them.

#include <map>
#include <memory>
#include <string>

#include "runtime/ptx/patch/patch.h"
#include "runtime/spread/kernel_model.h"

namespace hpe::spread {

class module_model {
 public:
  explicit module_model(const std::shared_ptr<const ptx::program>& program);

  struct kernel {
    std::unique_ptr<kernel_model> model;
    ptx::patch::patched_kernel patched;
    std::string obstacle;  // why the patched texts do not contain it, in one sentence; empty: they do
  };
  /// By the names that the PTX has.
  [[nodiscard]] const std::map<std::string, kernel>& kernels() const { return kernels_; }
  /// The texts with the kernels that can run a part of their grid, and their tables of variables.
  [[nodiscard]] const ptx::patch::patched_module& patched() const { return patched_; }

 private:
  std::map<std::string, kernel> kernels_;
  ptx::patch::patched_module patched_;
};

}  // namespace hpe::spread
