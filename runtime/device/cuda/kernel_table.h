#pragma once

#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/base/thread_safety.h"
#include "runtime/device/cuda/driver.h"
#include "runtime/device/device.h"

namespace hpe::device::cuda {

/// Modules and kernels, each loaded on every device. A module is a shared object that has CUDA code under the name
/// hpe_cuda_image (made by cmake/HpeCuda.cmake), or a file of nothing but CUDA code (.fatbin, .cubin, .ptx).
/// Thread-safe.
class kernel_table {
 public:
  /// contexts: by device; they must outlive the table.
  kernel_table(const driver& cu, std::vector<CUcontext> contexts) : cu_(cu), contexts_(std::move(contexts)) {}
  ~kernel_table();
  kernel_table(const kernel_table&) = delete;
  kernel_table& operator=(const kernel_table&) = delete;

  /// Both throw HPE_ERROR_NOT_FOUND. Devices for which wanted is false are left out.
  std::uint32_t load(const std::string& path, const std::vector<bool>& wanted);
  /// Loads a text of PTX.
  std::uint32_t load_ptx(const std::string& text, const std::vector<bool>& wanted);
  /// Unloads a module, of whose kernels none may be queued or running.
  void unload(std::uint32_t module);
  kernel_id find(std::uint32_t module, const std::string& name, const std::vector<bool>& wanted);

  /// A kernel on one device. Its dynamic shared memory is the value of the module's variable NAME_shared_bytes, a
  /// 32-bit number; 0 if there is no such variable.
  struct entry {
    CUfunction function = nullptr;
    unsigned shared_bytes = 0;
  };
  [[nodiscard]] entry at(kernel_id kernel, unsigned device) const;
  [[nodiscard]] std::string name(std::uint32_t function) const;

 private:
  std::uint32_t load(const std::string& name, const void* code, const std::vector<bool>& wanted);
  void load_functions(CUmodule from) const;
  [[nodiscard]] unsigned give_shared_memory(CUmodule from, const std::string& name, CUfunction to) const;

  struct module {
    std::string path;
    std::vector<CUmodule> on;  // by device; null if not loaded there
  };
  struct kernel {
    std::string name;
    std::vector<entry> on;
  };

  const driver& cu_;
  const std::vector<CUcontext> contexts_;
  mutable shared_mutex mutex_;
  std::deque<module> modules_ HPE_GUARDED_BY(mutex_);
  std::deque<kernel> kernels_ HPE_GUARDED_BY(mutex_);
};

}  // namespace hpe::device::cuda
