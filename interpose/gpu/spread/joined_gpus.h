#pragma once

#include <vector>

#include "runtime/device/cuda/driver.h"

namespace hpe::cuda_hooks {

/// The GPUs that a program sees as one device: device 0, and the GPUs that can access the memory of device 0 and of
/// each other. GPU 0 of this object is device 0. Constant after enter().
class joined_gpus {
 public:
  /// Queries the devices. Does not create a context.
  explicit joined_gpus(const device::cuda::driver& cu);
  /// Constructs an object with only one device.
  joined_gpus(const device::cuda::driver& cu, CUdevice alone) : cu_(cu), devices_{alone} {}

  [[nodiscard]] unsigned count() const { return static_cast<unsigned>(devices_.size()); }
  [[nodiscard]] CUdevice device(unsigned n) const { return devices_[n]; }
  [[nodiscard]] const std::vector<CUdevice>& devices() const { return devices_; }

  /// Retains the primary contexts until the process ends. Throws hpe::error if the driver refuses.
  void enter();
  /// Lets each GPU access the memory that the driver has allocated on the other GPUs, except the memory of pools; for
  /// hpe memory, this call is not necessary. Later allocations take longer, because the driver maps each allocation for
  /// all GPUs. Throws hpe::error if the driver refuses access between GPUs.
  void share_driver_memory() const;
  /// Lets the other GPUs access the memory of a pool of GPU 0, also memory that is allocated later. Throws hpe::error
  /// if the driver refuses.
  void share_pool(CUmemoryPool pool) const;
  /// Returns the primary context of a GPU. To be called after enter().
  [[nodiscard]] CUcontext context(unsigned n) const { return contexts_[n]; }

  /// Whether the GPUs support atomic operations on each other's memory.
  [[nodiscard]] bool have_atomics() const { return atomics_; }

 private:
  [[nodiscard]] bool reach_each_other(CUdevice a, CUdevice b) const;

  const device::cuda::driver& cu_;
  std::vector<CUdevice> devices_;
  std::vector<CUcontext> contexts_;
  bool atomics_ = true;
};

}  // namespace hpe::cuda_hooks
