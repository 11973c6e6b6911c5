#pragma once

#include <deque>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/thread_safety.h"
#include "runtime/device/cuda/driver.h"
#include "runtime/device/device.h"

namespace hpe::device::cuda {

/// The modules and kernels that are loaded on the GPUs of a set. A module is a shared object that contains CUDA code
/// under the name hpe_cuda_image (cmake/HpeCuda.cmake builds such objects), or a file that contains only CUDA code
/// (.fatbin, .cubin, .ptx). Thread-safe.
class kernel_table {
 public:
  /// `context_of` returns the context of a device. The contexts must outlive the table.
  kernel_table(const driver& cu, std::size_t devices, std::function<CUcontext(std::size_t)> context_of)
      : cu_(cu), devices_(devices), context_of_(std::move(context_of)) {}
  ~kernel_table();
  kernel_table(const kernel_table&) = delete;
  kernel_table& operator=(const kernel_table&) = delete;

  /// Loads the module in the file `path` on each device for which `wanted` is true, and returns the module's number.
  /// Throws HPE_ERROR_NOT_FOUND if the module cannot be loaded on one of these devices.
  std::uint32_t load(const std::string& path, const std::vector<bool>& wanted);
  /// Like load, but loads texts of PTX and links them.
  std::uint32_t load_ptx(std::span<const std::string> texts, const std::vector<bool>& wanted);
  /// Unloads a module. None of its kernels may be queued or running.
  void unload(std::uint32_t module);
  kernel_id find(std::uint32_t module, const std::string& name, const std::vector<bool>& wanted);

  /// Returns the address of a module's variable on each device; 0 where the module is not loaded.
  [[nodiscard]] std::vector<CUdeviceptr> find_variable(std::uint32_t module, const char* name) const;

  /// The kernel NAME on one device. `shared_bytes`, the size of the kernel's dynamic shared memory, is the value of the
  /// module's 32-bit variable NAME_shared_bytes, or 0 if the module has no such variable.
  struct kernel_on_device {
    CUfunction function = nullptr;
    unsigned shared_bytes = 0;
    unsigned allowed_bytes = 0;  // the dynamic shared memory that hpe has requested for the kernel's launches
  };
  [[nodiscard]] kernel_on_device at(kernel_id kernel, unsigned device) const;
  /// Lets launches of the kernel on the device use `bytes` bytes of dynamic shared memory. If the driver refuses, it
  /// also refuses the launch. The device's context must be current.
  void allow_shared_memory(kernel_id kernel, unsigned device, unsigned bytes);
  [[nodiscard]] std::string name(std::uint32_t function) const;

 private:
  /// Loads a module on each wanted device and returns the module's number. `load_one(made)` loads the module in the
  /// current context and stores it in `*made`.
  template <class Load>
  std::uint32_t load(const std::string& name, const Load& load_one, const std::vector<bool>& wanted);
  void load_functions(CUmodule from) const;
  [[nodiscard]] unsigned give_shared_memory(CUmodule from, const std::string& name, CUfunction to) const;

  struct module {
    std::string path;
    std::vector<CUmodule> on;  // by device; null if the module is not loaded on the device
  };
  struct kernel {
    std::string name;
    std::vector<kernel_on_device> on;
  };

  const driver& cu_;
  const std::size_t devices_;
  const std::function<CUcontext(std::size_t)> context_of_;
  mutable shared_mutex mutex_;
  std::deque<module> modules_ HPE_GUARDED_BY(mutex_);
  std::deque<kernel> kernels_ HPE_GUARDED_BY(mutex_);
};

}  // namespace hpe::device::cuda
