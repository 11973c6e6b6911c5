#pragma once

/// The kernels that a device process has loaded: functions of shared objects, and kernels of PTX.

#include <map>
#include <string>

#include "hpe/kernel.h"
#include "runtime/base/thread_safety.h"
#include "runtime/device/soft/softd/ptx.h"

namespace hpe::device::soft {

class kernel_table {
 public:
  struct kernel {
    hpeHostKernel body = nullptr;            // the function, if the kernel is in a shared object
    std::shared_ptr<loaded_ptx_module> ptx;  // the module, if the kernel is a PTX kernel; otherwise null
    std::string name;
  };

  // These functions serve requests of the owner, which chooses the numbers. Both load and find throw
  // HPE_ERROR_NOT_FOUND.
  void load(std::uint32_t module, const std::string& path);
  void load(std::uint32_t module, std::shared_ptr<loaded_ptx_module> ptx);
  /// Unloads a module of PTX. None of its kernels may be queued or running.
  void unload(std::uint32_t module);
  void find(std::uint32_t module, std::uint32_t function, const std::string& name);

  /// Throws HPE_ERROR_NOT_FOUND. The result is valid until its module is unloaded. Thread-safe.
  [[nodiscard]] const kernel& at(std::uint32_t function) const;

 private:
  mutable shared_mutex mutex_;
  std::map<std::uint32_t, void*> modules_ HPE_GUARDED_BY(mutex_);  // never closed: kernels may run until the end
  std::map<std::uint32_t, std::shared_ptr<loaded_ptx_module>> ptx_ HPE_GUARDED_BY(mutex_);
  std::map<std::uint32_t, kernel> functions_ HPE_GUARDED_BY(mutex_);
};

}  // namespace hpe::device::soft
