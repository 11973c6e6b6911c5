#pragma once

#include <memory>
#include <vector>

#include "runtime/base/thread_safety.h"
#include "runtime/device/cuda/driver.h"

namespace hpe::cuda_hooks {

/// The GPUs that a program sees as one device: device 0, and the GPUs that can access the memory of device 0 and of
/// each other. GPU 0 of this object is device 0. Thread-safe after enter().
class joined_gpus {
 public:
  /// Queries the devices. Does not create a context.
  explicit joined_gpus(const device::cuda::driver& cu);
  /// Constructs an object with only one device.
  joined_gpus(const device::cuda::driver& cu, CUdevice alone) : cu_(cu), devices_{alone} {}

  [[nodiscard]] unsigned count() const { return static_cast<unsigned>(devices_.size()); }
  [[nodiscard]] CUdevice device(unsigned n) const { return devices_[n]; }
  [[nodiscard]] const std::vector<CUdevice>& devices() const { return devices_; }

  /// Retains the primary context of GPU 0 until the process ends. Throws hpe::error if the driver refuses.
  void enter();
  /// Lets each GPU access the memory that the driver has allocated on the other GPUs, except the memory of pools; for
  /// hpe memory, this call is not necessary. Later allocations take longer, because the driver maps each allocation for
  /// all GPUs. Throws hpe::error if the driver refuses access between GPUs.
  void share_driver_memory() const;
  /// Lets the other GPUs access the memory of a pool of GPU 0, also memory that is allocated later. Throws hpe::error
  /// if the driver refuses.
  void share_pool(CUmemoryPool pool) const;
  /// Returns the primary context of a GPU. To be called after enter(). The first call for a GPU other than GPU 0
  /// retains the context until the process ends, and throws hpe::error if the driver refuses; making a context takes
  /// about 0.1 s.
  [[nodiscard]] CUcontext context(unsigned n) const { return n == 0 ? first_ : other_context(n); }

  /// Whether the GPUs support atomic operations on each other's memory.
  [[nodiscard]] bool have_atomics() const { return atomics_; }

 private:
  [[nodiscard]] bool reach_each_other(CUdevice a, CUdevice b) const;
  [[nodiscard]] CUcontext retain(unsigned n) const;
  [[nodiscard]] CUcontext other_context(unsigned n) const;

  const device::cuda::driver& cu_;
  std::vector<CUdevice> devices_;
  CUcontext first_ = nullptr;
  struct made_later {
    mutex guard;
    std::vector<CUcontext> contexts HPE_GUARDED_BY(guard);  // null before the first use
  };
  std::unique_ptr<made_later> others_ = std::make_unique<made_later>();
  bool atomics_ = true;
};

}  // namespace hpe::cuda_hooks
