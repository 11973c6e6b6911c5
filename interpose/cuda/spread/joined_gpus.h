#pragma once

#include <vector>

#include "runtime/device/cuda/driver.h"

namespace hpe::cuda_hooks {

/// The GPUs that a program sees as one: device 0, and those that reach its memory and each other's. The first one is
/// the program's device. Constant after enter().
class joined_gpus {
 public:
  /// Only looks at the devices. Makes no context.
  explicit joined_gpus(const device::cuda::driver& cu);

  [[nodiscard]] unsigned count() const { return static_cast<unsigned>(devices_.size()); }
  [[nodiscard]] CUdevice device(unsigned n) const { return devices_[n]; }

  /// Retains the primary contexts for the life of the process, and lets each GPU use the memory of the others, that of
  /// default pools too. Throws hpe::error if the driver refuses.
  void enter();
  /// That of a GPU, after enter().
  [[nodiscard]] CUcontext context(unsigned n) const { return contexts_[n]; }
  [[nodiscard]] bool entered_all() const { return contexts_.size() == devices_.size(); }

  /// Whether atomic operations of each GPU on the memory of each other one are atomic.
  [[nodiscard]] bool have_atomics() const { return atomics_; }
  /// Access of all GPUs, for cuMemSetAccess.
  [[nodiscard]] const std::vector<CUmemAccessDesc>& access() const { return access_; }

  struct memory {
    std::size_t free = 0, total = 0;
  };
  [[nodiscard]] memory memory_of(unsigned n) const;
  [[nodiscard]] memory all_memory() const;

  /// Waits for all queued work. Returns the first error.
  CUresult wait() const;

 private:
  [[nodiscard]] bool reach_each_other(CUdevice a, CUdevice b) const;

  const device::cuda::driver& cu_;
  std::vector<CUdevice> devices_;
  std::vector<CUcontext> contexts_;
  std::vector<CUmemAccessDesc> access_;
  bool atomics_ = true;
};

}  // namespace hpe::cuda_hooks
