#pragma once

/// The kernels that a device process has loaded: functions in shared objects, and PTX kernels.

#include <map>
#include <string>

#include "hpe/kernel.h"
#include "runtime/base/thread_safety.h"
#include "runtime/device/soft/softd/ptx_runner.h"

namespace hpe::device::soft {

class softd_kernels {
 public:
  struct kernel {
    hpeHostKernel body = nullptr;            // the function if the kernel is in a shared object; otherwise null
    std::shared_ptr<loaded_ptx_module> ptx;  // the module if the kernel is a PTX kernel; otherwise null
    std::string name;
  };

  // These functions carry out requests of the owner, which chooses the numbers of modules and functions. load throws
  // HPE_ERROR_NOT_FOUND if the file cannot be loaded, find if the module has no such kernel.
  void load(std::uint32_t module, const std::string& path);
  void load(std::uint32_t module, std::shared_ptr<loaded_ptx_module> ptx);
  /// Unloads a module of PTX. None of its kernels may be queued or running.
  void unload(std::uint32_t module);
  void find(std::uint32_t module, std::uint32_t function, const std::string& name);

  /// Returns the kernel to which find() has assigned this function number. Throws HPE_ERROR_NOT_FOUND if there is no
  /// such kernel. The result is valid until its module is unloaded. Thread-safe.
  [[nodiscard]] const kernel& at(std::uint32_t function) const;

 private:
  mutable shared_mutex mutex_;
  // Handles of dlopen, never closed, because kernels may run until the process ends.
  std::map<std::uint32_t, void*> modules_ HPE_GUARDED_BY(mutex_);
  std::map<std::uint32_t, std::shared_ptr<loaded_ptx_module>> ptx_ HPE_GUARDED_BY(mutex_);
  std::map<std::uint32_t, kernel> functions_ HPE_GUARDED_BY(mutex_);
};

}  // namespace hpe::device::soft
